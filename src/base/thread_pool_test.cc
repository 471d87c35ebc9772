#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "embertable/errors.h"
#include "embertable/executor.h"
#include "testing/refusal.h"

namespace embertable {
namespace {

std::vector<std::shared_ptr<Executor>> executors() {
  return {make_inline_executor(), make_thread_pool(1), make_thread_pool(2), make_thread_pool(7)};
}

/// How often each item ran.
std::vector<int> runs_of(Executor& executor, std::int64_t items) {
  std::vector<std::atomic<int>> runs(items);
  executor.run(items, [&](const WorkItem& item) { ++runs[item.index]; });
  return {runs.begin(), runs.end()};
}

std::string refused_pool(std::int32_t threads) {
  return refusal<ValueError>([&] { make_thread_pool(threads); });
}

TEST(Executor, RunsEveryItemOnce) {
  for (const auto& executor : executors()) {
    const std::int64_t workers = executor->workers();
    for (const std::int64_t items :
         {std::int64_t{0}, std::int64_t{1}, workers - 1, workers, workers + 1, 3 * workers,
          3 * workers + 1, std::int64_t{1000}}) {
      const std::vector<int> runs = runs_of(*executor, items);
      EXPECT_EQ(std::ranges::count(runs, 1), items) << workers << " workers";
    }
  }
}

TEST(Executor, SeesWhatTheCallerWroteAndShowsWhatTheItemsWrote) {
  const auto pool = make_thread_pool(4);
  std::vector<std::int64_t> values(100);
  for (std::int64_t round = 0; round < 2000; ++round) {
    values[0] = round;
    const std::int64_t base = round;
    pool->run(100, [&](const WorkItem& item) { values[item.index] = base + item.index; });
    ASSERT_EQ(values[99], round + 99);
    ASSERT_EQ(values[0], round);
  }
}

TEST(Executor, NoTwoItemsOfOneWorkerRunAtOnce) {
  const auto pool = make_thread_pool(4);
  std::vector<std::atomic<int>> inside(4);
  std::atomic<bool> crowded = false;
  for (int round = 0; round < 200; ++round) {
    pool->run(64, [&](const WorkItem& item) {
      std::atomic<int>& here = inside[item.worker];
      if (here.fetch_add(1) != 0) crowded = true;
      std::this_thread::yield();
      here.fetch_sub(1);
    });
  }
  EXPECT_FALSE(crowded);
}

TEST(Executor, NextIsWhatTheWorkerDoesNext) {
  for (const auto& executor : executors()) {
    std::vector<std::int64_t> promised(executor->workers(), -1);
    std::atomic<int> broken = 0;
    std::atomic<int> hints = 0;
    executor->run(1000, [&](const WorkItem& item) {
      std::int64_t& mine = promised[item.worker];
      if (mine >= 0 && mine != item.index) ++broken;
      if (item.next >= 0) ++hints;
      mine = item.next;
    });
    EXPECT_EQ(broken, 0);
    EXPECT_GT(hints, 900);
  }
}

TEST(Executor, ItemsOfOneRunOnOneThreadInOrder) {
  const auto pool = make_thread_pool(1);
  std::vector<std::int64_t> order;
  pool->run(5, [&](const WorkItem& item) { order.push_back(item.index); });
  EXPECT_EQ(order, (std::vector<std::int64_t>{0, 1, 2, 3, 4}));
}

TEST(ThreadPool, TwoItemsRunOnTwoThreads) {
  const auto pool = make_thread_pool(2);
  std::atomic<int> arrived = 0;
  pool->run(2, [&](const WorkItem&) {  // returns only if both items run at once
    ++arrived;
    while (arrived < 2) std::this_thread::yield();
  });
  EXPECT_EQ(arrived, 2);
}

TEST(ThreadPool, EveryWorkerTakesPart) {
  constexpr std::int32_t kThreads = 5;
  const auto pool = make_thread_pool(kThreads);
  std::atomic<std::uint32_t> seen = 0;
  pool->run(kThreads, [&](const WorkItem& item) {
    seen |= 1u << item.worker;
    while (seen != (1u << kThreads) - 1) std::this_thread::yield();
  });
  EXPECT_EQ(seen, (1u << kThreads) - 1);
}

TEST(ThreadPool, ANestedRunIsAlone) {
  const auto pool = make_thread_pool(3);
  std::atomic<int> inner = 0;
  std::atomic<int> elsewhere = 0;
  pool->run(20, [&](const WorkItem&) {
    const auto here = std::this_thread::get_id();
    pool->run(10, [&](const WorkItem& item) {
      ++inner;
      if (std::this_thread::get_id() != here || item.worker != 0) ++elsewhere;
    });
  });
  EXPECT_EQ(inner, 200);
  EXPECT_EQ(elsewhere, 0);
}

TEST(ThreadPool, SeveralCallersAreAllServed) {
  const auto pool = make_thread_pool(3);
  std::atomic<std::int64_t> sum = 0;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int round = 0; round < 500; ++round) {
        std::int64_t mine[3] = {};  // by worker: of this call alone
        pool->run(16, [&](const WorkItem& item) { mine[item.worker] += item.index; });
        sum += mine[0] + mine[1] + mine[2];
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 4 * 500 * 120);
}

TEST(ThreadPool, WakesAfterAPause) {
  const auto pool = make_thread_pool(3);
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(std::ranges::count(runs_of(*pool, 50), 1), 50);
  }
}

TEST(ThreadPool, ManyPoolsComeAndGo) {
  for (std::int32_t threads = 1; threads <= 64; ++threads) {
    const auto pool = make_thread_pool(threads);
    if (threads % 2 == 0) {
      EXPECT_EQ(std::ranges::count(runs_of(*pool, 100), 1), 100);
    }
  }
}

TEST(ThreadPool, RefusesACountOutsideItsRange) {
  EXPECT_EQ(refused_pool(0), "thread pool: threads must be 1..1024, got 0");
  EXPECT_EQ(refused_pool(-1), "thread pool: threads must be 1..1024, got -1");
  EXPECT_EQ(refused_pool(1025), "thread pool: threads must be 1..1024, got 1025");
  EXPECT_EQ(refused_pool(1), "");
}

/// 1 / 3, divided now, in the rounding mode of this thread.
float third() {
  volatile float one = 1;
  volatile float three = 3;
  return one / three;
}

TEST(Executor, BodiesRoundToNearestWhateverTheCallerDoes) {
  const float nearest = third();
  std::fesetround(FE_DOWNWARD);
  const float downward = third();
  std::atomic<int> wrong = 0;
  for (const auto& executor : executors()) {
    executor->run(100, [&](const WorkItem&) { wrong += third() == nearest ? 0 : 1; });
  }
  const float after = third();
  std::fesetround(FE_TONEAREST);
  EXPECT_NE(downward, nearest);
  EXPECT_EQ(after, downward);
  EXPECT_EQ(wrong, 0);
}

enum ChildFinds : int { kItemsRun, kItMayNotRun, kItemsMissed };

/// What a forked child finds, which drops the executor.
ChildFinds found_in_child(std::shared_ptr<Executor> executor) {
  ChildFinds found = kItMayNotRun;
  try {
    found = std::ranges::count(runs_of(*executor, 10), 1) == 10 ? kItemsRun : kItemsMissed;
  } catch (const StateError&) {
  }
  executor.reset();
  return found;
}

TEST(Executor, APoolOfThreadsRefusesToRunInAForkedChild) {
  std::vector<std::shared_ptr<Executor>> all = executors();
  for (std::size_t i = 0; i < all.size(); ++i) {
    runs_of(*all[i], 10);
    const pid_t child = fork();
    if (child == 0) _exit(found_in_child(std::move(all[i])));
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), i == 0 ? kItemsRun : kItMayNotRun);
    EXPECT_EQ(std::ranges::count(runs_of(*all[i], 10), 1), 10);
  }
}

}  // namespace
}  // namespace embertable
