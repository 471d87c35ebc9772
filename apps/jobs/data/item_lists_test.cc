#include "apps/jobs/data/item_lists.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "embertable/errors.h"
#include "testing/temporary_files.h"

namespace embertable::jobs {
namespace {

using Keys = std::vector<std::string>;

Vocabulary items() {
  Vocabulary keys(KeyKind::kInteger);
  for (const std::int64_t key : {10, 20, 30, 40}) keys.add(key);
  return keys;
}

/// The attributes of each item.
Keys shown_lists(const ItemLists& lists) {
  Keys all;
  for (std::int64_t item = 0; item + 1 < std::ssize(lists.splits); ++item) {
    std::string line;
    for (const std::int32_t id : lists.view()[item])
      line += (line.empty() ? "" : " ") + lists.keys.shown(id);
    all.push_back(line);
  }
  return all;
}

TEST(ItemLists, AreLinesInAnyOrder) {
  const TemporaryFiles files;
  files.write("side.txt", "30 7 8 7\n99 1 2\n10 5\n40\n");
  const ItemLists lists =
      read_item_lists({.lists = true, .file = "side.txt"}, items(), {.root = files.path()});
  EXPECT_EQ(shown_lists(lists), (Keys{"5", "", "7 8", ""}));
  EXPECT_EQ(lists.without, 1);  // 40 has a line
  EXPECT_EQ(lists.keys.size(), 3);
}

ItemListsSpec words() {
  return {.keys = {.kind = KeyKind::kString, .sorted = true},
          .file = "side.csv",
          .key = "code",
          .column = "text",
          .separator = " "};
}

TEST(ItemLists, AreThePiecesOfAColumn) {
  const TemporaryFiles files;
  files.write("side.csv", "code,text\n20,RED  HAT\n10,\"BIG RED, RED \"\n77,MUG\n40,\n");
  const ItemLists lists = read_item_lists(words(), items(), {.root = files.path()});
  EXPECT_EQ(shown_lists(lists), (Keys{"BIG RED, RED", "RED HAT", "", ""}));
  EXPECT_EQ(lists.keys.text(0), "BIG");
  EXPECT_EQ(lists.without, 1);
}

TEST(ItemLists, AnItemStandsThereOnce) {
  const TemporaryFiles files;
  files.write("side.csv", "code,text\n20,A\n10,B\n20,C\n");
  EXPECT_EQ(refusal<ValueError>(files.path(),
                                [&] { read_item_lists(words(), items(), {.root = files.path()}); }),
            "side.csv:4:1: 'code' must be an item that stands in no other line, got '20'");
  files.write("side.txt", "20 1\n20 2\n");
  EXPECT_EQ(refusal<ValueError>(files.path(),
                                [&] {
                                  read_item_lists({.lists = true, .file = "side.txt"}, items(),
                                                  {.root = files.path()});
                                }),
            "side.txt:2:1: a token must be an item that stands in no other line, got '20'");
}

TEST(ItemLists, BrokenLinesAreLeftOutWholly) {
  const TemporaryFiles files;
  const ItemListsSpec spec{.lists = true, .file = "side.txt"};
  files.write("side.txt", "10 1 2\n20 3 x 4\n10 9\ny 8\n20 4 3\n30 5 z");
  const ItemLists lists = read_item_lists(spec, items(), {.root = files.path(), .skip_bad = 4});
  EXPECT_EQ(shown_lists(lists), (Keys{"1 2", "4 3", "", ""}));
  EXPECT_EQ(lists.keys.size(), 4);  // 3 comes behind 4: it was first seen in a broken line
  EXPECT_EQ(lists.keys.shown(2), "4");
  EXPECT_EQ(lists.left_out.total(), 4);
  EXPECT_EQ(refusal<BrokenRecord>(
                files.path(),
                [&] { read_item_lists(spec, items(), {.root = files.path(), .skip_bad = 3}); }),
            "side.txt:6:6: a token must be an integer of 64 bits, got 'z'; 3 broken before it are "
            "left out, and no more may be");
}

TEST(ItemLists, BrokenRecordsAreLeftOutWholly) {
  const TemporaryFiles files;
  ItemListsSpec spec = words();
  spec.keys.kind = KeyKind::kInteger;
  spec.keys.sorted = false;
  files.write("side.csv", "code,text\n20,7 x 8\n20,8 7\nz,1\n10,9\n10,8\n30\n");
  const ItemLists lists = read_item_lists(spec, items(), {.root = files.path(), .skip_bad = 4});
  EXPECT_EQ(shown_lists(lists), (Keys{"9", "8 7", "", ""}));
  EXPECT_EQ(lists.keys.shown(0), "8");
  EXPECT_EQ(lists.left_out.total(), 4);
}

TEST(ItemLists, ASecondRunTakesThemFromTheCache) {
  const TemporaryFiles files;
  files.write("side.txt", "10 1 2\n20 3\n");
  const ItemListsSpec spec{.keys = {.name = "a/b"}, .lists = true, .file = "side.txt"};
  const DataOptions options = {.root = files.path(), .cache = files.path("cache")};
  const ItemLists first = read_item_lists(spec, items(), options);
  const std::string cached = files.path("cache/items.a_b.bin");
  const auto written = std::filesystem::last_write_time(cached);
  const ItemLists again = read_item_lists(spec, items(), options);
  EXPECT_EQ(std::filesystem::last_write_time(cached), written);
  EXPECT_EQ(data_digest(again), data_digest(first));
  EXPECT_EQ(again.without, 2);
  Vocabulary others(KeyKind::kInteger);
  others.add(std::int64_t{20});
  EXPECT_EQ(shown_lists(read_item_lists(spec, others, options)), (Keys{"3"}));
}

TEST(ItemLists, HaveADigest) {
  const TemporaryFiles files;
  files.write("side.txt", "10 1 2\n20 3\n");
  const ItemListsSpec spec{.lists = true, .file = "side.txt"};
  const std::string digest = data_digest(read_item_lists(spec, items(), {.root = files.path()}));
  EXPECT_EQ(data_digest(read_item_lists(spec, items(), {.root = files.path()})), digest);
  files.write("side.txt", "10 1\n20 2 3\n");
  EXPECT_NE(data_digest(read_item_lists(spec, items(), {.root = files.path()})), digest);
}

}  // namespace
}  // namespace embertable::jobs
