#include "testing/executor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

namespace embertable {
namespace {

std::vector<WorkItem> items_of(TestExecutor& executor, std::int64_t items) {
  std::vector<WorkItem> seen;
  executor.run(items, [&](const WorkItem& item) { seen.push_back(item); });
  return seen;
}

bool same(const std::vector<WorkItem>& a, const std::vector<WorkItem>& b) {
  return std::ranges::equal(a, b, [](const WorkItem& x, const WorkItem& y) {
    return x.index == y.index && x.next == y.next && x.worker == y.worker;
  });
}

TEST(TestExecutor, RunsEveryItemOnceOnAWorkerOfItsOwn) {
  TestExecutor executor(test_seed(), 3);
  SCOPED_TRACE(executor.to_string());
  for (const std::int64_t items : {0, 1, 2, 3, 100}) {
    std::set<std::int64_t> indices;
    for (const WorkItem& item : items_of(executor, items)) {
      EXPECT_TRUE(indices.insert(item.index).second);
      EXPECT_TRUE(0 <= item.index && item.index < items);
      EXPECT_TRUE(0 <= item.worker && item.worker < 3);
    }
    EXPECT_EQ(indices.size(), static_cast<std::size_t>(items));
  }
}

TEST(TestExecutor, NextIsWhatTheWorkerDoesNext) {
  TestExecutor executor(test_seed(), 4);
  SCOPED_TRACE(executor.to_string());
  std::map<std::int32_t, std::int64_t> promised;
  for (const WorkItem& item : items_of(executor, 50)) {
    const auto mine = promised.try_emplace(item.worker, item.index).first;
    EXPECT_EQ(mine->second, item.index);
    mine->second = item.next;
  }
  for (const auto& [worker, next] : promised) EXPECT_EQ(next, -1) << worker;
}

TEST(TestExecutor, TheSeedAndTheRegionMakeTheOrder) {
  TestExecutor one(5, 4);
  TestExecutor again(5, 4);
  TestExecutor other(6, 4);
  const auto first = items_of(one, 50);
  EXPECT_TRUE(same(first, items_of(again, 50)));
  EXPECT_FALSE(same(first, items_of(other, 50)));
  EXPECT_FALSE(same(first, items_of(one, 50)));
}

}  // namespace
}  // namespace embertable
