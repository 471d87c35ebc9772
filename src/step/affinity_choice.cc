#include "step/affinity_choice.h"

#include <algorithm>

namespace embertable {

void AffinityChoice::took(bool kept, double floats, double seconds) noexcept {
  // A step that was looked up before the way changed says nothing of the new one.
  if (kept != keeps_ || floats == 0) return;
  const double of_float = seconds / floats;
  double& fastest = fastest_[kept];
  if (steps_left_ <= kCompared)
    fastest = steps_left_ == kCompared ? of_float : std::min(fastest, of_float);
  if (--steps_left_ > 0) return;
  const bool stays = in_trial_ && fastest < fastest_[!kept];
  keeps_ = stays ? kept : !kept;
  in_trial_ = !in_trial_;
  steps_left_ = in_trial_ ? kUncounted + kCompared : kBetween;
}

}  // namespace embertable
