#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace embertable {

/// Finds out by the clock whether the rows of a table had better be fetched in bursts before they
/// are looked up, or updated, or one by one between other rows' work (Gather::bursts,
/// GroupedEntries::bursts). That depends on how many lines a processor waits for at once, how far
/// away they are, and how many of them a row has. So in some steps every other item of the table
/// goes the other way, and in the next of these steps the other items do. No result shows the
/// choice.
class BurstChoice {
 public:
  using Clock = std::chrono::steady_clock;

  /// Begins a step. in_question: whether its items may fetch rows in bursts. Requires: no item
  /// of the step before is still at work.
  void start(bool in_question) noexcept;

  /// Calls work(bursts) for an item of the step. In some steps, items of even and of odd numbers go
  /// different ways. Thread-safe.
  template <class Work>
  void time(std::int64_t item, std::int64_t entries, const Work& work) {
    const bool way = bursts(item);
    if (!tries_) return work(way);
    const Clock::time_point begin = Clock::now();
    work(way);
    took(way, entries, Clock::now() - begin);
  }

  /// Whether an item of the step fetches rows in bursts.
  bool bursts(std::int64_t item) const noexcept {
    return in_question_ && (tries_ ? (item + turn_) % 2 == 0 : bursts_);
  }

  /// Whether `took` is to be told of the step's items.
  bool tries() const noexcept { return tries_; }

  /// Takes the entries of an item and the time of its work. Thread-safe.
  void took(bool bursts, std::int64_t entries, Clock::duration time) noexcept;

 private:
  /// The first steps find nothing in caches and say nothing. So many after them all try, and then
  /// one in so many.
  static constexpr std::int64_t kWarmUp = 4, kFirstSteps = 16, kStepsOfTrial = 16;
  /// A new comparison weighs at least one in so many.
  static constexpr std::int64_t kRemembered = 16;

  struct Sum {
    std::atomic<std::int64_t> entries = 0, nanoseconds = 0;
  };

  void compare() noexcept;

  bool in_question_ = false, tries_ = false;
  bool bursts_ = true;
  std::int64_t steps_ = 0, trials_ = 0, comparisons_ = 0;
  std::int64_t turn_ = 0;
  double log_ratio_ = 0;     ///< mean of log(time of an entry in bursts / one by one)
  std::array<Sum, 2> sums_;  ///< two trials: one by one, in bursts
};

}  // namespace embertable
