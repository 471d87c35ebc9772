#include "step/affinity_choice.h"

#include <algorithm>

namespace embertable {

void AffinityChoice::took(bool kept, double floats, double seconds) noexcept {
  if (floats == 0) return;
  if (kept != keeps_) {
    // It was looked up before the way changed, and says nothing of the new one.
    if (phase_ == Phase::kOther && steps_ < kUncounted) ++steps_;
    return;
  }
  constexpr double kTick = 1e-9;  // The clock may stand still.
  const double of_float = std::max(seconds, kTick) / floats;
  const int step = steps_++;
  seconds_ += seconds;
  switch (phase_) {
    case Phase::kBetween:
      if (steps_ >= kBetweenSteps && seconds_ >= kBetweenSeconds) enter(Phase::kCurrent);
      break;
    case Phase::kCurrent:
      times_[step] = of_float;
      if (steps_ == kCompared) enter(Phase::kOther);
      break;
    case Phase::kOther:
      if (step >= kUncounted) ratios_[step - kUncounted] = of_float / times_[step - kUncounted];
      if (steps_ == kUncounted + kCompared) enter(Phase::kBetween);
      break;
  }
}

void AffinityChoice::enter(Phase phase) noexcept {
  phase_ = phase;
  steps_ = 0;
  seconds_ = 0;
  if (phase == Phase::kOther) keeps_ = !keeps_;
  if (phase != Phase::kBetween) return;
  const auto median = ratios_.begin() + kCompared / 2;
  std::ranges::nth_element(ratios_, median);
  if (*median >= 1) keeps_ = !keeps_;  // back
}

}  // namespace embertable
