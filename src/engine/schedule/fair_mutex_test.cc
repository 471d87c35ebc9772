#include "engine/schedule/fair_mutex.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

#include "testing/await_sleep.h"

namespace embertable::engine {
namespace {

TEST(FairMutex, IsGivenInTheOrderOfTheRequests) {
  constexpr int kThreads = 5;
  FairMutex mutex;
  std::vector<int> order, expected(kThreads);
  std::iota(expected.begin(), expected.end(), 0);
  std::vector<std::thread> threads;
  {
    const std::lock_guard held(mutex);
    for (int i = 0; i < kThreads; ++i) {
      std::atomic<pid_t> number = -1;
      threads.emplace_back([&, i] {
        number = this_thread();
        const std::lock_guard lock(mutex);
        order.push_back(i);
      });
      await_sleep(number);
    }
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(order, expected);
}

TEST(FairMutex, OneThreadAtATimeHasIt) {
  FairMutex mutex;
  std::int64_t count = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 1000; ++k) {
        const std::lock_guard lock(mutex);
        ++count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 4000);
}

}  // namespace
}  // namespace embertable::engine
