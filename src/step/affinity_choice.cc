#include "step/affinity_choice.h"

#include <algorithm>
#include <limits>

namespace embertable {

void AffinityChoice::took(bool kept, double floats, double seconds) noexcept {
  // A step that was looked up before the way changed says nothing of the new one.
  if (kept != keeps_ || floats == 0) return;
  ++steps_;
  seconds_ += seconds;
  double& fastest = fastest_[kept];
  const bool counts = phase_ == Phase::kCurrent || (phase_ == Phase::kOther && steps_ > kUncounted);
  if (counts) fastest = std::min(fastest, seconds / floats);
  switch (phase_) {
    case Phase::kBetween:
      if (steps_ >= kBetweenSteps && seconds_ >= kBetweenSeconds) enter(Phase::kCurrent);
      break;
    case Phase::kCurrent:
      if (steps_ == kCompared) enter(Phase::kOther);
      break;
    case Phase::kOther:
      if (steps_ == kUncounted + kCompared) enter(Phase::kBetween);
      break;
  }
}

void AffinityChoice::enter(Phase phase) noexcept {
  phase_ = phase;
  steps_ = 0;
  seconds_ = 0;
  if (phase == Phase::kCurrent) fastest_.fill(std::numeric_limits<double>::infinity());
  if (phase == Phase::kOther) keeps_ = !keeps_;
  if (phase == Phase::kBetween) keeps_ = fastest_[true] <= fastest_[false];
}

}  // namespace embertable
