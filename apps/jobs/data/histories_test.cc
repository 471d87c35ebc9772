#include "apps/jobs/data/histories.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "embertable/errors.h"
#include "testing/temporary_files.h"

namespace embertable::jobs {
namespace {

using Ids = std::vector<std::int32_t>;
using Keys = std::vector<std::string>;

/// Each user's key with the keys of the user's items: "7: 3 4".
Keys shown(const Histories& all) {
  Keys lines;
  for (std::int32_t user = 0; user < all.num_users(); ++user) {
    std::string line = all.users.shown(user) + ":";
    for (auto i = static_cast<std::size_t>(all.splits[user]);
         i < static_cast<std::size_t>(all.splits[user + 1]); ++i)
      line += " " + all.items.shown(all.events[i]);
    lines.push_back(line);
  }
  return lines;
}

/// "rvt": the parts of all events, training, validation or test.
std::string parts(const Histories& all) {
  std::string letters;
  for (const Part part : all.part) letters += "tvr"[static_cast<int>(part)];
  return letters;
}

HistoriesSpec lists(std::vector<std::string> test_files = {}) {
  HistoriesSpec spec;
  spec.lists = true;
  spec.files = {"lists.txt"};
  spec.test_files = std::move(test_files);
  return spec;
}

TEST(Histories, ReadsALineForAUser) {
  const TemporaryFiles files;
  files.write("lists.txt", "7 30 20 10\n5 20\n\n9\n7 40\n");
  const Histories all = read_histories(lists(), {.last = true}, {.root = files.path()});
  EXPECT_EQ(shown(all), (Keys{"7: 30 20 10 40", "5: 20"}));  // 9 has no event
  EXPECT_EQ(all.events, (Ids{0, 1, 2, 3, 1}));
  EXPECT_EQ(parts(all), "rrvtt");
}

TEST(Histories, NumbersKeysInRisingOrderIfAsked) {
  const TemporaryFiles files;
  files.write("lists.txt", "7 30 20\n5 20 10 30\n");
  HistoriesSpec spec = lists();
  spec.users.sorted = spec.items.sorted = true;
  const Histories all = read_histories(spec, {.last = true}, {.root = files.path()});
  EXPECT_EQ(shown(all), (Keys{"5: 20 10 30", "7: 30 20"}));
  EXPECT_EQ(all.events, (Ids{1, 0, 2, 2, 1}));
}

TEST(Histories, ATestFileLeavesTheFirstBucketToTraining) {
  const TemporaryFiles files;
  std::string text = "1";
  for (int item = 0; item < 1000; ++item) text += " " + std::to_string(item);
  files.write("lists.txt", text);
  files.write("test.txt", "1 1000 1001\n2 5\n");
  const Histories all = read_histories(lists({"test.txt"}), {}, {.root = files.path()});
  EXPECT_EQ(shown(all)[1], "2: 5");
  for (std::int64_t item = 0; item < 1000; ++item) {
    const bool validation = split_bucket(pair_key(1, item)) == 1;
    EXPECT_EQ(all.part[item], validation ? Part::kValidation : Part::kTraining);
  }
  EXPECT_EQ(parts(all).substr(1000), "ttt");
  const Histories salted = read_histories(lists({"test.txt"}), {.salt = 7}, {.root = files.path()});
  EXPECT_NE(parts(salted), parts(all));
}

TEST(Histories, WithoutATestFileBucketZeroIsTheTestPart) {
  const TemporaryFiles files;
  files.write("lists.txt", "314 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20");
  const Histories all = read_histories(lists(), {}, {.root = files.path()});
  for (std::int64_t item = 1; item <= 20; ++item)
    EXPECT_EQ(all.part[item - 1], split_part(pair_key(314, item)));
}

constexpr const char* kEvents =
    "basket,who,what,when,count\n"
    "b1,ann,10,2010-01-02 10:00:00,1\n"
    "b1,ann,11x,2010-01-02 10:00:00,2\n"
    "b2,bob,10,2010-01-01,1\n"
    "b1,ann,10,2010-01-02 10:00:00,5\n"  // once per basket
    "b0,ann,12,2010-01-01 23:59,1\n"     // before
    "b3,ann,10,2010-01-03T00:00:00,1\n"  // another basket
    "b4,,10,2010-01-04,1\n"              // nobody
    "b5,bob,11x,2010-01-04,-1\n"         // given back
    "b6,bob,POST,2010-01-05,1\n"         // no digit
    "b7,bob,13,2009-12-31,1\n"
    "b8,cid,10,2010-01-05,1\n";  // too few

HistoriesSpec events() {
  HistoriesSpec spec;
  spec.files = {"events.csv"};
  spec.users.kind = spec.items.kind = KeyKind::kString;
  spec.user = "who";
  spec.item = "what";
  spec.time = "when";
  spec.once_per = "basket";
  spec.where = {field_rule("who", "filled"), field_rule("count", "> 0"),
                field_rule("what", "digit first")};
  spec.min_events = 2;
  return spec;
}

TEST(Histories, ReadsRecordsInTheOrderOfTheirTime) {
  const TemporaryFiles files;
  files.write("events.csv", kEvents);
  const Histories all = read_histories(events(), {.last = true}, {.root = files.path()});
  EXPECT_EQ(shown(all), (Keys{"ann: 12 10 11x 10", "bob: 13 10"}));
  EXPECT_EQ(parts(all), "rrvtvt");
  EXPECT_EQ(all.items.size(), 4);
}

TEST(Histories, ReadsRecordsAsTheyStandWithoutATime) {
  const TemporaryFiles files;
  files.write("events.csv", kEvents);
  HistoriesSpec spec = events();
  spec.time = spec.once_per = "";
  EXPECT_EQ(shown(read_histories(spec, {.last = true}, {.root = files.path()})),
            (Keys{"ann: 10 11x 10 12 10", "bob: 10 13"}));
}

TEST(Histories, EqualTimesKeepTheOrderOfTheFile) {
  const TemporaryFiles files;
  files.write("events.csv", "who,what,when\n1,5,3\n1,4,-20\n1,9,3\n1,1,3\n");
  HistoriesSpec spec;
  spec.files = {"events.csv"};
  spec.user = "who";
  spec.item = "what";
  spec.time = "when";
  EXPECT_EQ(shown(read_histories(spec, {.last = true}, {.root = files.path()})),
            (Keys{"1: 4 5 9 1"}));
}

std::string refusal_of(const HistoriesSpec& spec, const TemporaryFiles& files) {
  return refusal<ValueError>(files.path(),
                             [&] { read_histories(spec, {}, {.root = files.path()}); });
}

TEST(Histories, SaysWhereWhatIsWrong) {
  const TemporaryFiles files;
  files.write("lists.txt", "1 2\n3 x\n");
  EXPECT_NE(refusal_of(lists(), files).find("lists.txt:2:3: "), std::string::npos);
  HistoriesSpec spec = events();
  files.write("events.csv", "basket,who,what,when,count\nb,ann,1,2010-1-1,1\n");
  EXPECT_NE(refusal_of(spec, files)
                .find("events.csv:2:9: 'when' must be an integer or a time as 2009-12-31 23:59:59, "
                      "got '2010-1-1'"),
            std::string::npos)
      << refusal_of(spec, files);
  files.write("events.csv", "basket,who,what,when,count\nb,ann,1,5,many\n");
  EXPECT_NE(refusal_of(spec, files).find("'count' must be"), std::string::npos);
  files.write("events.csv", "basket,who,what,when,count\nb,ann,1,5,1\n");
  EXPECT_EQ(refusal_of(spec, files),
            "'events.csv' must have events that data.where accepts, of users with at least 2, got "
            "none by who = \"filled\", count = \"> 0\", what = \"digit first\"");
  spec.where.clear();
  EXPECT_EQ(refusal_of(spec, files),
            "'events.csv' must have events of users with at least 2, got none");
}

TEST(Histories, TimesAreAllIntegersOrAllDates) {
  const TemporaryFiles files;
  HistoriesSpec spec = events();
  files.write("events.csv", "basket,who,what,when,count\nb,ann,1,5,1\nb,ann,2,2010-01-01,1\n");
  EXPECT_NE(refusal_of(spec, files)
                .find("events.csv:3:9: 'when' must be an integer, as the times before it, which "
                      "dates do not follow, got '2010-01-01'"),
            std::string::npos)
      << refusal_of(spec, files);
  files.write("events.csv",
              "basket,who,what,when,count\nb,ann,1,2010-01-01,1\nb,ann,2,1262304000,1\n");
  EXPECT_NE(
      refusal_of(spec, files)
          .find("events.csv:3:9: 'when' must be a date, as the times before it, which integers "
                "do not follow, got '1262304000'"),
      std::string::npos);
}

TEST(FieldRule, IsOneOfAFew) {
  EXPECT_EQ(field_rule("a", ">= -1.5").number, -1.5);
  EXPECT_EQ(field_rule("a", "is x y").text, "x y");
  for (const char* text : {"", "full", ">0", "> ", "> x", "digit"}) {
    EXPECT_EQ(refusal<ValueError>("", [&] { field_rule("a", text); }),
              "must be \"filled\", \"digit first\", \"> N\", \">= N\", \"< N\", \"<= N\" or \"is "
              "TEXT\", got \"" +
                  std::string(text) + "\"");
  }
}

TEST(FieldRule, ComparesIntegersOfSixtyFourBitsWithoutRounding) {
  const TemporaryFiles files;
  files.write("a.csv", "9007199254740992\n9007199254740993\n-9223372036854775808\n0.5\n");
  const auto kept = [&](const char* text) {
    const FieldRule rule = field_rule("1", text);
    const std::string columns[] = {"1"};
    CsvReader reader(files.path("a.csv"), {.header = false}, columns);
    std::string lines;
    while (reader.next())
      if (holds(rule, reader, 0)) lines += std::to_string(reader.line());
    return lines;
  };
  EXPECT_EQ(kept("> 9007199254740992"), "2");
  EXPECT_EQ(kept("<= 9007199254740992"), "134");
  EXPECT_EQ(kept("> -9223372036854775807"), "124");
  EXPECT_EQ(kept(">= 0.5"), "124");
}

TEST(ItemSets, AreRisingAndHoldNothingTwice) {
  Histories all{.splits = {0, 4, 4, 6},
                .events = {3, 1, 3, 2, 5, 4},
                .part = {Part::kTraining, Part::kTraining, Part::kTraining, Part::kTest,
                         Part::kValidation, Part::kTest}};
  const ItemSets known = item_sets(all, Part::kValidation, Part::kTraining);
  EXPECT_EQ(known.items, (Ids{1, 3, 5}));
  EXPECT_EQ(known.splits, (std::vector<std::int64_t>{0, 2, 2, 3}));
  const ItemSets every = item_sets(all, Part::kTest, Part::kTraining);
  EXPECT_EQ(difference(every, known).items, (Ids{2, 4}));
  EXPECT_EQ(difference(every, known).splits, (std::vector<std::int64_t>{0, 1, 1, 2}));
}

/// Its data with broken lines left out, which must be those of a text without them.
void expect_left_out(const HistoriesSpec& spec, const std::string& broken, const std::string& whole,
                     std::int64_t lines) {
  const TemporaryFiles files;
  const std::string file = spec.files.front();
  files.write(file, whole);
  const Histories expected = read_histories(spec, {.last = true}, {.root = files.path()});
  files.write(file, broken);
  const Histories found =
      read_histories(spec, {.last = true}, {.root = files.path(), .skip_bad = lines});
  EXPECT_EQ(found.left_out.total(), lines);
  EXPECT_EQ(data_digests(found), data_digests(expected));
  EXPECT_THROW(read_histories(spec, {.last = true}, {.root = files.path(), .skip_bad = lines - 1}),
               BrokenRecord);
}

TEST(Histories, BrokenLinesAreLeftOutWholly) {
  expect_left_out(lists(), "7 1 2\n9 3 x 4\nx 5 6\n5 2 3\n9 1 2\n8 y", "7 1 2\n5 2 3\n9 1 2\n", 3);
  const std::string whole = kEvents;
  const std::size_t second = whole.find('\n') + 1;
  expect_left_out(events(),
                  whole.substr(0, second) +
                      "b,zed,10,yesterday,1\nb,zed,10,2010-01-01,many\nb,zed,10\n" +
                      whole.substr(second) + "b,\"zed,10,2010-01-01,1",
                  whole, 4);
  HistoriesSpec integers = events();
  integers.users.kind = KeyKind::kInteger;
  integers.time = integers.once_per = "";
  integers.where.clear();
  const std::string rows = "basket,who,what,when,count\na,1,5,,\na,1,6,,\na,2,5,,\na,2,5,,\n";
  expect_left_out(integers, rows + "a,x,7,,\na,9223372036854775808,7,,\n", rows, 2);
}

TEST(Histories, ASecondRunTakesThemFromTheCache) {
  const TemporaryFiles files;
  files.write("lists.txt", "7 1 2\nx 3\n5 2 3\n");
  files.write("test.txt", "7 3\n");
  DataOptions options = {.root = files.path(), .cache = files.path("cache"), .skip_bad = 1};
  const Histories first = read_histories(lists({"test.txt"}), {}, options);
  const std::string cached = files.path("cache/histories.bin");
  const auto written = std::filesystem::last_write_time(cached);
  const Histories again = read_histories(lists({"test.txt"}), {}, options);
  EXPECT_EQ(std::filesystem::last_write_time(cached), written);
  EXPECT_EQ(data_digests(again), data_digests(first));
  EXPECT_EQ(again.left_out.total(), 1);
  // Another job or file is read anew.
  EXPECT_NE(parts(read_histories(lists(), {.last = true}, options)), parts(first));
  files.write("lists.txt", "7 1 2 9\nx 3\n5 2 3\n");
  EXPECT_EQ(shown(read_histories(lists({"test.txt"}), {}, options)),
            (Keys{"7: 1 2 9 3", "5: 2 3"}));
  options.skip_bad = 0;
  EXPECT_THROW(read_histories(lists({"test.txt"}), {}, options), BrokenRecord);
}

TEST(Histories, EqualDataHaveEqualDigests) {
  const TemporaryFiles files;
  files.write("lists.txt", "1 2 3\n2 3 4\n");
  const auto digests =
      data_digests(read_histories(lists(), {.last = true}, {.root = files.path()}));
  files.write_compressed("lists.txt", "1\t2 3 \r\n\n2 3 4");
  EXPECT_EQ(data_digests(read_histories(lists(), {.last = true}, {.root = files.path()})), digests);
  EXPECT_NE(data_digests(read_histories(lists(), {}, {.root = files.path()})).at("events"),
            digests.at("events"));
  files.write("lists.txt", "1 2 3\n2 4 3\n");
  const auto others = data_digests(read_histories(lists(), {.last = true}, {.root = files.path()}));
  EXPECT_NE(others.at("events"), digests.at("events"));
  EXPECT_EQ(others.at("users"), digests.at("users"));
}

}  // namespace
}  // namespace embertable::jobs
