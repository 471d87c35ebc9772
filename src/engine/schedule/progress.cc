#include "engine/schedule/progress.h"

#include <utility>

#include "base/step_number.h"
#include "embertable/errors.h"

namespace embertable::engine {

Progress::Progress(std::function<void(const std::string&)> stop, std::function<void()> resume)
    : stop_(std::move(stop)), resume_(std::move(resume)) {}

std::int64_t StepCount::next() const {
  if (taken_ >= kMostStep) throw StateError("step 2^62 was the last: assign_step sets its number");
  return taken_ + 1;
}

void Progress::require_not_failed(std::string_view call) const {
  const std::lock_guard lock(mutex_);
  if (!failure_.empty()) throw StateError(std::string(call) + ": the engine failed " + failure_);
}

std::string Progress::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void Progress::fail(std::string when_and_why) {
  const std::lock_guard lock(mutex_);
  failure_ = std::move(when_and_why);
  if (stop_) stop_("the engine failed " + failure_);
}

void Progress::recover() {
  steps_->drop_taken();
  const std::lock_guard lock(mutex_);
  failure_.clear();
  if (resume_) resume_();
}

}  // namespace embertable::engine
