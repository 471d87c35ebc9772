#include "step/burst_choice.h"

#include <algorithm>
#include <cmath>

namespace embertable {

void BurstChoice::start(bool in_question) noexcept {
  if (tries_ && trials_ % 2 == 0) compare();
  in_question_ = in_question;
  const std::int64_t step = in_question ? steps_++ : steps_;
  tries_ =
      in_question && step >= kWarmUp && (step < kWarmUp + kFirstSteps || step % kStepsOfTrial == 0);
  if (!tries_) return;
  // Two kinds of batches may take turns: an item goes in bursts first in one pair of trials, and
  // then in the next.
  const std::int64_t pair = trials_ / 2;
  turn_ = (trials_ + pair) % 2;
  ++trials_;
}

void BurstChoice::took(bool bursts, std::int64_t entries, Clock::duration time) noexcept {
  Sum& sum = sums_[bursts ? 1 : 0];
  sum.entries.fetch_add(entries, std::memory_order_relaxed);
  sum.nanoseconds.fetch_add(std::chrono::duration_cast<std::chrono::nanoseconds>(time).count(),
                            std::memory_order_relaxed);
}

/// Takes what two trials have shown.
void BurstChoice::compare() noexcept {
  double of_entry[2] = {};  // nanoseconds
  for (int way = 0; way < 2; ++way) {
    const std::int64_t entries = sums_[way].entries.exchange(0);
    const std::int64_t time = sums_[way].nanoseconds.exchange(0);
    if (entries > 0) of_entry[way] = static_cast<double>(time) / static_cast<double>(entries);
  }
  if (of_entry[0] == 0 || of_entry[1] == 0) return;
  // A thread that did not run for a while says nothing about rows.
  constexpr double kMost = 0.2;
  const double log_ratio = std::clamp(std::log(of_entry[1] / of_entry[0]), -kMost, kMost);
  comparisons_ = std::min(comparisons_ + 1, kRemembered);
  log_ratio_ += (log_ratio - log_ratio_) / static_cast<double>(comparisons_);
  bursts_ = log_ratio_ <= 0;
}

}  // namespace embertable
