#include "step/affinity_choice.h"

#include <algorithm>
#include <tuple>

namespace embertable {
namespace {

template <class Times>
double median(Times times) {
  constexpr std::size_t kMiddle = std::tuple_size_v<Times> / 2;
  std::ranges::nth_element(times, times.begin() + kMiddle);
  return times[kMiddle];
}

}  // namespace

void AffinityChoice::took(bool kept, double floats, double seconds) noexcept {
  // A step that was looked up before the way changed says nothing of the new one.
  if (kept != keeps_ || floats == 0) return;
  ++steps_;
  seconds_ += seconds;
  Times& times = times_[kept];
  switch (phase_) {
    case Phase::kBetween:
      if (steps_ >= kBetweenSteps && seconds_ >= kBetweenSeconds) enter(Phase::kCurrent);
      break;
    case Phase::kCurrent:
      times[steps_ - 1] = seconds / floats;
      if (steps_ == kCompared) enter(Phase::kOther);
      break;
    case Phase::kOther:
      if (steps_ > kUncounted) times[steps_ - kUncounted - 1] = seconds / floats;
      if (steps_ == kUncounted + kCompared) enter(Phase::kBetween);
      break;
  }
}

void AffinityChoice::enter(Phase phase) noexcept {
  phase_ = phase;
  steps_ = 0;
  seconds_ = 0;
  if (phase == Phase::kOther) keeps_ = !keeps_;
  if (phase == Phase::kBetween) keeps_ = median(times_[true]) <= median(times_[false]);
}

}  // namespace embertable
