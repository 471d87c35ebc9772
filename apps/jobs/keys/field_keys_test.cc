#include "apps/jobs/keys/field_keys.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "embertable/errors.h"
#include "testing/temporary_files.h"

namespace embertable::jobs {
namespace {

using testing::ElementsAre;
using IdLists = std::vector<std::vector<std::int32_t>>;

class FieldKeysTest : public testing::Test {
 protected:
  /// Rows by record of all columns of a text without header. Records r with trains[r] count.
  IdLists rows(const std::string& text, FieldKeys& keys, std::vector<std::uint8_t> trains = {}) {
    std::vector<std::string> columns;
    for (std::size_t f = 0; f < keys.width(); ++f) columns.push_back(std::to_string(f + 1));
    CsvReader reader(files_.write("a", text), {.header = false}, columns);
    IdLists ids;
    while (reader.next()) {
      keys.push(reader);
      ids.emplace_back(keys.width());
      const std::uint8_t one = trains.empty() ? 1 : trains[ids.size() - 1];
      keys.number({&one, 1}, ids.back().data(), 0);
    }
    keys.finish();
    for (auto& record : ids) {
      for (std::size_t f = 0; f < record.size(); ++f) record[f] = keys.row(record[f], f);
    }
    return ids;
  }
  static FieldKeys make(KeyRules rules, std::size_t width, std::vector<bool> number = {}) {
    std::vector<KeyField> fields;
    for (std::size_t f = 0; f < width; ++f) fields.push_back({f, f < number.size() && number[f]});
    const std::vector<std::string> all = {"A", "B", "C"};
    return FieldKeys(std::move(rules), fields,
                     {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(width)});
  }
  /// What a saved map says of records gives the rows that training gave.
  void expect_same_from_map(const std::string& text, KeyRules rules, const FieldKeys& trained,
                            const IdLists& expected) {
    std::vector<KeyField> fields;
    std::vector<std::string> names;
    for (std::size_t f = 0; f < trained.width(); ++f) {
      fields.push_back({f, false});
      names.push_back(std::string(1, static_cast<char>('A' + f)));
    }
    const IdMap map = IdMap::from_bytes(trained.vocabulary().id_map().to_bytes());
    FieldKeys again(std::move(rules), fields, names, map);
    EXPECT_EQ(rows(text, again), expected);
  }
  TemporaryFiles files_;
};

TEST_F(FieldKeysTest, KeysAreNumberedAsTheyAreFirstSeen) {
  FieldKeys keys = make({}, 1);
  EXPECT_EQ(rows("7\n-3\n7\n", keys), (IdLists{{0}, {1}, {0}}));
  EXPECT_EQ(keys.vocabulary().integer(1), -3);
  EXPECT_EQ(keys.vocabulary().num_rows(), 2);
}

TEST_F(FieldKeysTest, SortedKeysAreNumberedByTheirOrder) {
  FieldKeys keys = make({.order = KeyOrder::kSorted}, 1);
  EXPECT_EQ(rows("7\n-3\n10\n", keys), (IdLists{{1}, {0}, {2}}));
}

TEST_F(FieldKeysTest, ColumnsHaveKeysOfTheirOwn) {
  const KeyRules rules = {.kind = KeyKind::kString, .by_column = true};
  FieldKeys keys = make(rules, 2);
  const std::string text = "x,x\ny,x\nx,y\n";
  const IdLists expected = {{0, 1}, {2, 1}, {0, 3}};
  EXPECT_EQ(rows(text, keys), expected);
  EXPECT_EQ(keys.vocabulary().text(1), "B=x");
  expect_same_from_map(text, rules, keys, expected);
}

TEST_F(FieldKeysTest, RareKeysOfAColumnShareARow) {
  const KeyRules rules = {.kind = KeyKind::kString, .by_column = true, .min_count = 2};
  FieldKeys keys = make(rules, 2);
  // Trained: A=x twice, B=p twice, B=q once; A=z and B=p once more where nothing trains.
  const std::string text = "x,p\nx,q\nz,p\nz,p\n";
  const IdLists expected = {{0, 1}, {0, 3}, {2, 1}, {2, 1}};
  EXPECT_EQ(rows(text, keys, {1, 1, 0, 1}), expected);
  EXPECT_EQ(keys.vocabulary().text(2), "A");
  EXPECT_EQ(keys.vocabulary().text(3), "B");
  EXPECT_EQ(keys.vocabulary().num_rows(), 4);
  expect_same_from_map(text, rules, keys, expected);
  expect_same_from_map("x,unseen\n", rules, keys, {{0, 3}});
}

TEST_F(FieldKeysTest, RareKeysOfOneColumnHaveTheRowBehind) {
  for (const KeyOrder order : {KeyOrder::kFirst, KeyOrder::kSorted}) {
    const KeyRules rules = {.order = order, .min_count = 2};
    FieldKeys keys = make(rules, 1);
    const std::string text = "5\n5\n9\n";
    EXPECT_EQ(rows(text, keys), (IdLists{{0}, {0}, {1}}));
    EXPECT_EQ(keys.vocabulary().num_rows(), 2);
    EXPECT_EQ(keys.vocabulary().id_map().row(std::int64_t{77}), 1);
    expect_same_from_map("77\n5\n", rules, keys, {{1}, {0}});
  }
}

TEST_F(FieldKeysTest, SortingComesAfterRareKeysAreGone) {
  FieldKeys keys = make({.order = KeyOrder::kSorted, .min_count = 2}, 1);
  EXPECT_EQ(rows("9\n1\n4\n9\n4\n", keys), (IdLists{{1}, {2}, {0}, {1}, {0}}));
}

TEST_F(FieldKeysTest, AnEmptyFieldOfIntegersIsRare) {
  FieldKeys keys = make({.missing = "?", .min_count = 1}, 1);
  EXPECT_EQ(rows("?\n3\n\"\"\n4\n", keys), (IdLists{{2}, {0}, {2}, {1}}));
}

TEST_F(FieldKeysTest, AMissingFieldIsAnEmptyKeyOfTexts) {
  FieldKeys keys = make({.kind = KeyKind::kString, .missing = "?", .by_column = true}, 2);
  EXPECT_EQ(rows("?,x\nx,?\n,?\n", keys), (IdLists{{0, 1}, {2, 3}, {0, 3}}));
  EXPECT_EQ(keys.vocabulary().text(0), "A=");
}

TEST_F(FieldKeysTest, NumbersBecomeTokens) {
  FieldKeys keys = make({.kind = KeyKind::kString, .by_column = true}, 2, {true, false});
  EXPECT_EQ(rows("1000,1000\n1001,1\n,1\n1,1\n", keys), (IdLists{{0, 1}, {0, 2}, {3, 2}, {4, 2}}));
  EXPECT_EQ(keys.vocabulary().text(0), "A=~47");
}

TEST_F(FieldKeysTest, IntegersOfColumnsHaveOneForm) {
  FieldKeys keys = make({.by_column = true}, 2);
  EXPECT_EQ(rows("007,7\n7,\n", keys), (IdLists{{0, 1}, {0, 2}}));
  EXPECT_EQ(keys.vocabulary().text(0), "A=7");
}

TEST_F(FieldKeysTest, HashedKeysHaveTheRowsOfAHashedIdMap) {
  FieldKeys texts = make({.kind = KeyKind::kString, .by_column = true, .hash_rows = 1000}, 2);
  const IdMap of_texts = IdMap::hashed(KeyKind::kString, 1000);
  EXPECT_EQ(rows("x,y\n", texts),
            (IdLists{{static_cast<std::int32_t>(of_texts.row(std::string_view("A=x"))),
                      static_cast<std::int32_t>(of_texts.row(std::string_view("B=y")))}}));
  EXPECT_TRUE(texts.vocabulary().id_map() == of_texts);
  FieldKeys numbers = make({.hash_rows = 1000}, 1);
  EXPECT_EQ(rows("-12\n", numbers),
            (IdLists{{static_cast<std::int32_t>(
                IdMap::hashed(KeyKind::kInteger, 1000).row(std::int64_t{-12}))}}));
}

TEST_F(FieldKeysTest, AnUnknownKeyWithoutSharedRowsHasNone) {
  FieldKeys keys = make({}, 1);
  rows("7\n", keys);
  expect_same_from_map("8\n7\n", {}, keys, {{-1}, {0}});
}

/// Two texts of `size` bytes whose keys of a column "A" have hashes with the same low half, all
/// that a table keeps of them.
std::pair<std::string, std::string> texts_of_one_hash(std::size_t size) {
  std::map<std::uint32_t, std::string> texts;
  for (std::uint64_t i = 0;; ++i) {
    const std::string text = fmt::format("{:0{}}", i, size);
    const auto hash = static_cast<std::uint32_t>(KeyTable::hash("A=" + text));
    const auto [found, is_new] = texts.try_emplace(hash, text);
    if (!is_new) return {found->second, text};
  }
}

TEST_F(FieldKeysTest, ATextThatHashesAsAKeyHasNotItsNumber) {
  for (const std::size_t size : {8, 70}) {
    const auto [known, unknown] = texts_of_one_hash(size);
    const KeyRules rules = {.kind = KeyKind::kString, .by_column = true};
    FieldKeys keys = make(rules, 1);
    EXPECT_EQ(rows(known + "\n", keys), (IdLists{{0}}));
    expect_same_from_map(unknown + "\n" + known + "\n", rules, keys, {{-1}, {0}});
    FieldKeys both = make(rules, 1);
    EXPECT_EQ(rows(known + "\n" + unknown + "\n" + known + "\n" + unknown + "\n", both),
              (IdLists{{0}, {1}, {0}, {1}}));
  }
}

TEST_F(FieldKeysTest, ANewKeyOfTwoRecordsOfOneQueueHasOneNumber) {
  FieldKeys keys = make({.kind = KeyKind::kString, .by_column = true, .min_count = 2}, 1);
  const std::vector<std::string> columns = {"1"};
  CsvReader reader(files_.write("a", "x\nx\ny\n"), {.header = false}, columns);
  while (reader.next()) keys.push(reader);
  const std::uint8_t trains[] = {1, 1, 1};
  std::int32_t out[3] = {};
  keys.number(trains, out, 1);
  EXPECT_THAT(out, ElementsAre(0, 0, 1));
  EXPECT_THAT(keys.vocabulary().keys().seen(), ElementsAre(2, 1));
}

TEST_F(FieldKeysTest, KeysOfEverySizeHaveTheRowsOfTheirIdMap) {
  for (const std::string column : {"C", "a column's name", "a column's long name"}) {
    std::string text;
    for (std::size_t size = 1; size < 40; ++size) text += std::string(size, 'k') + "\n";
    FieldKeys keys({.kind = KeyKind::kString, .by_column = true}, {{}}, {column});
    FieldKeys hashed({.kind = KeyKind::kString, .by_column = true, .hash_rows = 1 << 20}, {{}},
                     {column});
    const IdLists numbers = rows(text, keys), hashes = rows(text, hashed);
    const IdMap map = IdMap::hashed(KeyKind::kString, 1 << 20);
    for (std::int32_t i = 0; i < 39; ++i) {
      const std::string key = column + "=" + std::string(static_cast<std::size_t>(i) + 1, 'k');
      EXPECT_EQ(numbers[i][0], i);
      EXPECT_EQ(keys.vocabulary().text(i), key);
      EXPECT_EQ(hashes[i][0], map.row(std::string_view(key)));
    }
  }
}

TEST_F(FieldKeysTest, SaysWhichFieldIsNoKey) {
  FieldKeys numbers = make({.kind = KeyKind::kString, .by_column = true}, 2, {false, true});
  EXPECT_EQ(refusal<BrokenRecord>(files_.path(), [&] { rows("1,2\n1,x\n", numbers); }),
            "a:2:3: '2' must be a number or empty, got 'x'");
  FieldKeys integers = make({}, 1);
  EXPECT_EQ(
      refusal<BrokenRecord>(files_.path(), [&] { rows("1\n1.5\n", integers); }),
      "a:2:1: '1' must be an integer of 64 bits, or any text with keys = \"string\", got '1.5'");
}

TEST_F(FieldKeysTest, BrokenAndTakenBackRecordsLeaveNoKeys) {
  FieldKeys keys = make({.kind = KeyKind::kString, .by_column = true}, 2, {false, true});
  const std::vector<std::string> columns = {"1", "2"};
  CsvReader reader(files_.write("a", "p,1\nq,x\nr,2\ns,1\n"), {.header = false}, columns);
  ASSERT_TRUE(reader.next());
  keys.push(reader);
  ASSERT_TRUE(reader.next());
  EXPECT_THROW(keys.push(reader), BrokenRecord);
  ASSERT_TRUE(reader.next());
  keys.push(reader);
  keys.pop();
  ASSERT_TRUE(reader.next());
  keys.push(reader);
  const std::uint8_t trains[] = {1, 1};
  std::int32_t out[6] = {};
  keys.number(trains, out, 3);
  EXPECT_THAT(out, ElementsAre(0, 1, 0, 2, 1, 0));
  EXPECT_EQ(keys.vocabulary().text(2), "A=s");
  EXPECT_EQ(keys.vocabulary().size(), 3);
}

TEST_F(FieldKeysTest, ListsHaveAnyNumberOfKeys) {
  FieldKeys keys = make({.separator = "|", .min_count = 2}, 1);
  const std::vector<std::string> columns = {"1"};
  CsvReader reader(files_.write("a", "1|2\n\"\"\n2|2|3\n"), {.header = false}, columns);
  while (reader.next()) keys.push(reader);
  const std::uint8_t trains[] = {1, 1, 1};
  std::vector<std::int32_t> ids;
  std::vector<std::int64_t> splits = {0};
  keys.number_lists(trains, ids, splits);
  keys.finish();
  for (std::int32_t& id : ids) id = keys.row(id, 0);
  EXPECT_THAT(splits, ElementsAre(0, 2, 2, 5));
  EXPECT_THAT(ids, ElementsAre(1, 0, 0, 0, 1));
}

TEST_F(FieldKeysTest, ManyRecordsQueuedAtOnceAreAsOneByOne) {
  std::string text;
  std::uint64_t state = 1;
  for (int i = 0; i < 1000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    text += std::to_string((state >> 33) % 97) + ",key-" + std::to_string((state >> 43) % 301) +
            "-long enough\n";
  }
  const KeyRules rules = {.kind = KeyKind::kString, .by_column = true, .min_count = 3};
  FieldKeys one = make(rules, 2), queued = make(rules, 2);
  const IdLists expected = rows(text, one);
  const std::vector<std::string> columns = {"1", "2"};
  CsvReader reader(files_.path("a"), {.header = false}, columns);
  while (reader.next()) queued.push(reader);
  const std::vector<std::uint8_t> trains(1000, 1);
  std::vector<std::int32_t> out(2000);
  queued.number(trains, out.data(), 2);
  queued.finish();
  for (std::size_t i = 0; i < out.size(); ++i)
    ASSERT_EQ(queued.row(out[i], i % 2), expected[i / 2][i % 2]) << i;
}

}  // namespace
}  // namespace embertable::jobs
