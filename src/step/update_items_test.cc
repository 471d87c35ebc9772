#include "step/update_items.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace embertable {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

/// Returns the tables and first entries of items in the order in which a worker takes them.
std::vector<std::pair<std::int32_t, std::int64_t>> sorted(TableOrder order) {
  // With one worker, items are large if they have more than a sixteenth of all 1,600 entries.
  std::vector<UpdateItem> items = {
      {.table = 0, .first = 0, .left = 50},   {.table = 0, .first = 50, .left = 99},
      {.table = 1, .first = 0, .left = 1000}, {.table = 1, .first = 1000, .left = 100},
      {.table = 2, .first = 0, .left = 300},  {.table = 2, .first = 300, .left = 51}};
  sort_items(1, order, items);
  std::vector<std::pair<std::int32_t, std::int64_t>> places;
  for (const UpdateItem& item : items) places.emplace_back(item.table, item.first);
  return places;
}

TEST(SortItems, PutsLargeOnesFirstAndTheOthersTableByTable) {
  EXPECT_THAT(
      sorted(TableOrder::kFirstToLast),
      ElementsAre(Pair(1, 0), Pair(2, 0), Pair(0, 0), Pair(0, 50), Pair(1, 1000), Pair(2, 300)));
}

TEST(SortItems, TakesTheLastTableFirstIfAsked) {
  EXPECT_THAT(
      sorted(TableOrder::kLastToFirst),
      ElementsAre(Pair(1, 0), Pair(2, 0), Pair(2, 300), Pair(1, 1000), Pair(0, 0), Pair(0, 50)));
}

}  // namespace
}  // namespace embertable
