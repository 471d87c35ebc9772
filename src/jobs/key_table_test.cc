#include "jobs/key_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>

#include "jobs/vocabulary.h"

namespace embertable::jobs {
namespace {

using testing::ElementsAre;

std::int32_t add(KeyTable& table, std::string_view key, std::uint32_t times = 1) {
  return table.add(key, KeyTable::hash(key), times);
}
std::int32_t find(const KeyTable& table, std::string_view key) {
  return table.find(key, KeyTable::hash(key));
}

TEST(KeyTable, NumbersKeysAsTheyCome) {
  KeyTable table;
  EXPECT_EQ(find(table, "a"), -1);
  EXPECT_EQ(add(table, "a"), 0);
  EXPECT_EQ(add(table, ""), 1);
  EXPECT_EQ(add(table, "a"), 0);
  EXPECT_EQ(find(table, ""), 1);
  EXPECT_EQ(find(table, "b"), -1);
  EXPECT_EQ(table[0], "a");
  EXPECT_EQ(table[1], "");
}

TEST(KeyTable, CountsWhatItIsTold) {
  KeyTable table;
  for (const std::uint32_t times : {1u, 0u, 1u}) add(table, "a", times);
  add(table, "b", 0);
  for (int i = 0; i < 3; ++i) add(table, "c", 0x80000000u);
  EXPECT_THAT(table.seen(), ElementsAre(2, 0, 0xffffffffu));
}

TEST(KeyTable, TellsKeysApartByEveryByteAndByTheirLength) {
  for (const std::size_t size : {1, 7, 8, 9, 15, 16, 17, 40}) {
    KeyTable table;
    const std::string zeros(size, '\0');
    EXPECT_EQ(add(table, zeros), 0);
    EXPECT_EQ(add(table, zeros + '\0'), 1);
    for (std::size_t i = 0; i < size; ++i) {
      std::string key = zeros;
      key[i] = 1;
      EXPECT_EQ(add(table, key), static_cast<std::int32_t>(2 + i));
      EXPECT_EQ(find(table, key), static_cast<std::int32_t>(2 + i));
    }
  }
}

TEST(KeyHead, HoldsTheFirstBytesHoweverItIsRead) {
  const std::string bytes = "abcdefghijklmnopqrstuvwxyz012345";
  for (std::size_t size = 0; size <= 16; ++size) {
    const std::string_view key = std::string_view(bytes).substr(3, size);
    char expected[16] = {};
    key.copy(expected, size);
    for (const KeyHead head : {KeyHead::of(key), KeyHead::of_padded(key)})
      EXPECT_EQ(std::memcmp(&head, expected, 16), 0) << size;
  }
}

TEST(KeyTable, ComparesWhatHasOneHash) {
  KeyTable table;
  const std::string head(16, 'x');
  EXPECT_EQ(table.add(head + "a", 5, 1), 0);
  EXPECT_EQ(table.add(head + "b", 5, 1), 1);
  EXPECT_EQ(table.add("y", 5, 1), 2);
  EXPECT_EQ(table.find(head + "b", 5), 1);
  EXPECT_EQ(table.find("z", 5), -1);
}

TEST(KeyTable, AgreesWithAMapOnManyRandomKeys) {
  KeyTable table;
  std::map<std::string, std::int32_t> expected;
  std::map<std::string, std::uint32_t> seen;
  std::uint64_t state = 3;
  for (int i = 0; i < 200'000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const std::string key = std::to_string((state >> 40) % 50'000) + std::string(state >> 61, 'k');
    const auto number = expected.try_emplace(key, static_cast<std::int32_t>(expected.size())).first;
    ++seen[key];
    ASSERT_EQ(add(table, key), number->second);
  }
  ASSERT_EQ(static_cast<std::size_t>(table.size()), expected.size());
  const std::vector<std::uint32_t> counts = table.seen();
  for (const auto& [key, number] : expected) {
    ASSERT_EQ(table[number], key);
    ASSERT_EQ(find(table, key), number);
    ASSERT_EQ(counts[static_cast<std::size_t>(number)], seen[key]);
  }
}

TEST(Vocabulary, KeysOfEitherKindComeBack) {
  Vocabulary numbers(KeyKind::kInteger), texts(KeyKind::kString);
  EXPECT_EQ(numbers.add(std::int64_t{-5}), 0);
  EXPECT_EQ(numbers.add(INT64_MAX), 1);
  EXPECT_EQ(numbers.find(std::int64_t{-5}), 0);
  EXPECT_EQ(numbers.find(std::int64_t{5}), -1);
  EXPECT_EQ(numbers.integer(0), -5);
  EXPECT_EQ(numbers.shown(1), "9223372036854775807");
  EXPECT_EQ(texts.add("x"), 0);
  EXPECT_EQ(texts.text(0), "x");
  EXPECT_EQ(texts.shown(0), "x");
}

TEST(Vocabulary, SortsIntegersByValueAndTextsByBytes) {
  Vocabulary numbers(KeyKind::kInteger), texts(KeyKind::kString);
  for (const std::int64_t key : {300, -1, 2}) numbers.add(key);
  for (const char* key : {"b", "\xff", "a"}) texts.add(std::string_view(key));
  EXPECT_THAT(numbers.sort(), ElementsAre(2, 0, 1));
  EXPECT_THAT(texts.sort(), ElementsAre(1, 2, 0));
  EXPECT_EQ(numbers.integer(0), -1);
  EXPECT_EQ(texts.text(2), "\xff");
}

TEST(Vocabulary, SharedRowsAreThoseOfItsIdMap) {
  Vocabulary keys(KeyKind::kString, 7);
  for (const char* key : {"a", "b"}) keys.add(std::string_view(key));
  const IdMap map = keys.id_map();
  EXPECT_EQ(keys.num_rows(), 9);
  EXPECT_EQ(map.num_rows(), 9);
  for (const std::string key : {"c", "", "a longer key than most"})
    EXPECT_EQ(keys.shared_row(key), map.row(std::string_view(key)));
  EXPECT_TRUE(Vocabulary(map).id_map() == map);
}

}  // namespace
}  // namespace embertable::jobs
