#include "engine/schedule/fair_mutex.h"

#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

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
      threads.emplace_back([&, i] {
        const std::lock_guard lock(mutex);
        order.push_back(i);
      });
      std::this_thread::sleep_for(std::chrono::milliseconds(50));  // it asks meanwhile
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
