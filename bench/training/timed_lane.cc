#include "bench/training/timed_lane.h"

#include <chrono>

#include "bench/machine/timing.h"

namespace embertable::bench {
namespace {

/// Longer than threads of a pool look for work before they sleep.
constexpr std::chrono::microseconds kPause(100);

}  // namespace

void TimedLane::step_in_turn(std::size_t batch, std::size_t gradient) {
  const auto until = std::chrono::steady_clock::now() + kPause;
  while (std::chrono::steady_clock::now() < until) {  // awake: the processor keeps its frequency
  }
  step(batch, gradient);
}

void TimedLane::end_pass(bool counts) {
  if (counts) passes_.push_back(pass_);
  pass_ = {};
}

LaneSeconds TimedLane::median() const {
  const auto of = [this](auto&& part) {
    std::vector<double> values;
    for (const StageSeconds& pass : passes_) values.push_back(part(pass));
    return bench::median(std::move(values));
  };
  LaneSeconds result;
  result.stages.enqueue = of([](const StageSeconds& pass) { return pass.enqueue; });
  result.stages.forward = of([](const StageSeconds& pass) { return pass.forward; });
  result.stages.backward = of([](const StageSeconds& pass) { return pass.backward; });
  result.step = of([](const StageSeconds& pass) { return pass.step(); });
  return result;
}

}  // namespace embertable::bench
