#include "jobs/item_lists.h"

#include <gtest/gtest.h>

#include "embertable/errors.h"
#include "jobs/temporary_files.h"

namespace embertable::jobs {
namespace {

using Keys = std::vector<std::string>;

Vocabulary items() {
  Vocabulary keys(KeyKind::kInteger);
  for (const std::int64_t key : {10, 20, 30, 40}) keys.add(key);
  return keys;
}

/// The attributes of each item.
Keys shown(const ItemLists& lists) {
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
      read_item_lists({.lists = true, .file = "side.txt"}, items(), files.path());
  EXPECT_EQ(shown(lists), (Keys{"5", "", "7 8", ""}));
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
  const ItemLists lists = read_item_lists(words(), items(), files.path());
  EXPECT_EQ(shown(lists), (Keys{"BIG RED, RED", "RED HAT", "", ""}));
  EXPECT_EQ(lists.keys.text(0), "BIG");
  EXPECT_EQ(lists.without, 1);
}

TEST(ItemLists, AnItemStandsThereOnce) {
  const TemporaryFiles files;
  files.write("side.csv", "code,text\n20,A\n10,B\n20,C\n");
  EXPECT_EQ(
      refusal<ValueError>(files.path(), [&] { read_item_lists(words(), items(), files.path()); }),
      "side.csv:4:1: 'code' must be an item that stands in no other line, got '20'");
  files.write("side.txt", "20 1\n20 2\n");
  EXPECT_EQ(
      refusal<ValueError>(
          files.path(),
          [&] { read_item_lists({.lists = true, .file = "side.txt"}, items(), files.path()); }),
      "side.txt:2:1: a token must be an item that stands in no other line, got '20'");
}

TEST(ItemLists, HaveADigest) {
  const TemporaryFiles files;
  files.write("side.txt", "10 1 2\n20 3\n");
  const ItemListsSpec spec{.lists = true, .file = "side.txt"};
  const std::string digest = data_digest(read_item_lists(spec, items(), files.path()));
  EXPECT_EQ(data_digest(read_item_lists(spec, items(), files.path())), digest);
  files.write("side.txt", "10 1\n20 2 3\n");
  EXPECT_NE(data_digest(read_item_lists(spec, items(), files.path())), digest);
}

}  // namespace
}  // namespace embertable::jobs
