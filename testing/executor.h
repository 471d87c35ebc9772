#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "embertable/executor.h"

namespace embertable {

/// For tests: runs the items of a region in an order and on pretended workers that a seed chooses,
/// others in each region, all on the calling thread. May be shared by threads; the order of their
/// calls is then theirs.
class TestExecutor final : public Executor {
 public:
  TestExecutor(std::uint64_t seed, std::int32_t workers) : seed_(seed), workers_(workers) {}

  std::int32_t workers() const noexcept override { return workers_; }

  void run(std::int64_t items, FunctionRef<void(const WorkItem&)> body) override {
    for (const WorkItem& item : schedule(items, regions_.fetch_add(1))) body(item);
  }

  /// For SCOPED_TRACE: what makes the same executor again.
  std::string to_string() const {
    return "TestExecutor(" + std::to_string(seed_) + ", " + std::to_string(workers_) + ")";
  }

 private:
  std::vector<WorkItem> schedule(std::int64_t items, std::uint64_t region) const {
    const Permutation order(items, mix_seeds(seed_, region));
    const RandomRow random(seed_, region);
    std::vector<WorkItem> schedule(items);
    std::vector<WorkItem*> last(workers_);
    for (std::int64_t i = 0; i < items; ++i) {
      const auto bits = random.bits(static_cast<std::uint64_t>(i));
      const auto worker = uniform_below(bits, static_cast<std::uint64_t>(workers_));
      WorkItem& item = schedule[i];
      item = {.index = order[i], .next = -1, .worker = static_cast<std::int32_t>(worker)};
      if (last[worker] != nullptr) last[worker]->next = item.index;
      last[worker] = &item;
    }
    return schedule;
  }

  std::uint64_t seed_;
  std::int32_t workers_;
  std::atomic<std::uint64_t> regions_ = 0;
};

/// The seed of a random test: the same in every run, so that a result depends on the tree alone;
/// EMBERTABLE_TEST_SEED names another, or "random" for one of the clock's. Printed, so that a
/// failure can be repeated.
inline std::uint64_t test_seed() {
  const char* given = std::getenv("EMBERTABLE_TEST_SEED");
  std::uint64_t seed = 20260101;
  if (given != nullptr) {
    const auto now = std::chrono::system_clock::now().time_since_epoch().count();
    seed = std::string_view(given) == "random" ? mix_bits(static_cast<std::uint64_t>(now))
                                               : std::strtoull(given, nullptr, 0);
  }
  std::printf("EMBERTABLE_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

/// A seed of a random test that has several: `number` in every run, unless EMBERTABLE_TEST_SEED is
/// set, which then gives others.
inline std::uint64_t test_seed(std::uint64_t number) {
  static const std::uint64_t given =
      std::getenv("EMBERTABLE_TEST_SEED") != nullptr ? test_seed() : 0;
  return std::getenv("EMBERTABLE_TEST_SEED") != nullptr ? mix_seeds(given, number) : number;
}

}  // namespace embertable
