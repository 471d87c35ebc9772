#include "bench/timed_lane.h"

#include "bench/median.h"
#include "bench/stopwatch.h"

namespace embertable::bench {
namespace {

/// Threads that still spin for work of the lane before get this long to give up.
constexpr double kPauseSeconds = 100e-6;

}  // namespace

LaneData::LaneData(const Workload& workload, int threads)
    : batches_(make_batches(workload)),
      gradients_(workload, kGradientBytes),
      memory_(workload.output_floats() * sizeof(float)),
      input_{.workload = workload,
             .batches = batches_,
             .gradients = gradients_.buffers(),
             .activations = {memory_.as<float>(), workload.output_floats()},
             .threads = threads} {}

void TimedLane::step(std::size_t batch, std::size_t gradient) {
  if (lane_ == nullptr) return;
  Stopwatch pause;
  for (double waited = 0; waited < kPauseSeconds;) waited += pause.lap();
  pass_ += lane_->step(batch, gradient);
}

void TimedLane::end_pass(bool counts) {
  if (counts) passes_.push_back(pass_);
  pass_ = {};
}

std::optional<LaneSeconds> TimedLane::median() const {
  if (lane_ == nullptr) return std::nullopt;
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
