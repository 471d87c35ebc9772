#include "step/burst_choice.h"

#include <algorithm>
#include <cmath>

namespace embertable {

void BurstChoice::start(bool in_question) noexcept {
  if (tries_ && trials_ % 2 == 0) compare();
  in_question_ = in_question;
  const std::int64_t step = in_question ? steps_++ : steps_;
  tries_ = in_question && (step < kFirstSteps || step % kStepsOfTrial == 0);
  if (!tries_) return;
  // Batches of two kinds may take turns, so that the first of a pair goes either way in turn.
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
  double seconds[2];  // an entry
  bool both = true;
  for (int way = 0; way < 2; ++way) {
    const auto entries = static_cast<double>(sums_[way].entries.exchange(0));
    const auto time = static_cast<double>(sums_[way].nanoseconds.exchange(0));
    both = both && entries > 0 && time > 0;
    seconds[way] = time / entries;
  }
  if (!both) return;
  // A thread that did not run for a while says nothing about rows.
  constexpr double kMost = 0.2;
  const double log_ratio = std::clamp(std::log(seconds[1] / seconds[0]), -kMost, kMost);
  comparisons_ = std::min(comparisons_ + 1, kRemembered);
  log_ratio_ += (log_ratio - log_ratio_) / static_cast<double>(comparisons_);
  bursts_ = log_ratio_ <= 0;
}

}  // namespace embertable
