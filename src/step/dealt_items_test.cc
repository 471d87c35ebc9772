#include "step/dealt_items.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include "step/workers.h"
#include "testing/executor.h"

namespace embertable {
namespace {

using Indices = std::vector<std::int64_t>;

/// Deals items that lie at these places.
void deal(DealtItems& items, std::int32_t workers, const std::vector<double>& places) {
  items.start(workers, std::ssize(places));
  for (const double place : places) items.add(place);
  items.deal();
}

/// Claims as many items as there are left of `count` for one worker. Returns (index, next).
std::vector<std::pair<std::int64_t, std::int64_t>> claim(DealtItems& items, std::int32_t worker,
                                                         int count) {
  std::vector<std::pair<std::int64_t, std::int64_t>> claimed;
  for (int i = 0; i < count; ++i) {
    const WorkItem item = items.claim(worker);
    EXPECT_EQ(item.worker, worker);
    claimed.emplace_back(item.index, item.next);
  }
  return claimed;
}

TEST(DealtItems, GoToTheirWorkersInOrderThenToOthersFromTheEnd) {
  using Claimed = std::vector<std::pair<std::int64_t, std::int64_t>>;
  DealtItems items;
  deal(items, 2, {0, 0.6, 0.2, 0.9, 0.5, 0.49});  // 0, 2, 5 and 1, 3, 4
  EXPECT_EQ(claim(items, 0, 2), (Claimed{{0, 2}, {2, 5}}));
  EXPECT_EQ(claim(items, 1, 1), (Claimed{{1, 3}}));
  EXPECT_EQ(claim(items, 0, 2), (Claimed{{5, -1}, {4, 3}}));
  EXPECT_EQ(claim(items, 1, 1), (Claimed{{3, -1}}));
  deal(items, 3, {0.5, 0.5});
  EXPECT_EQ(claim(items, 2, 1), (Claimed{{1, 0}}));
  EXPECT_EQ(claim(items, 0, 1), (Claimed{{0, -1}}));
}

TEST(DealtItems, PlacesAtTheEdgesAreDealt) {
  DealtItems items;
  deal(items, 3, {1, 0});
  EXPECT_EQ(items.claim(2).index, 0);
  EXPECT_EQ(items.claim(0).index, 1);
}

TEST(DealtItems, AreEachRunOnceByWhateverWorkersThereAre) {
  std::mt19937 random(static_cast<std::uint32_t>(test_seed()));
  for (const std::int32_t threads : {2, 3, 8}) {
    const auto pool = make_thread_pool(threads);
    TestExecutor pretended(random(), threads);
    for (Executor* const executor : {pool.get(), static_cast<Executor*>(&pretended)}) {
      Workers workers(*executor, 0);
      DealtItems items;
      for (int region = 0; region < 50; ++region) {
        const auto count = static_cast<std::int64_t>(random() % 100);
        const double skew = region % 3;  // with 2, most are of the first workers
        items.start(threads, count);
        for (std::int64_t i = 0; i < count; ++i)
          items.add(std::pow(static_cast<double>(random() % 1000) / 1000, 1 + 4 * skew));
        std::vector<std::atomic<int>> runs(count);
        workers.run(items, 0, [&](const WorkItem& item) {
          ++runs[item.index];
          EXPECT_LT(item.next, count);
          EXPECT_LT(item.worker, threads);
        });
        for (const auto& of : runs) EXPECT_EQ(of, 1) << threads << " workers, " << count;
      }
    }
  }
}

TEST(DealtItems, OfSmallRegionsAreRunInTheirOrderByTheCaller) {
  TestExecutor executor(test_seed(), 4);
  Workers workers(executor, 100);
  DealtItems items;
  items.start(4, 3);
  for (const double place : {0.9, 0.1, 0.5}) items.add(place);
  Indices order;
  EXPECT_EQ(workers.run(items, 99, [&](const WorkItem& item) { order.push_back(item.index); }), 1);
  EXPECT_EQ(order, (Indices{0, 1, 2}));
}

}  // namespace
}  // namespace embertable
