#include "bench/workload_bench.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "bench/gradients.h"
#include "bench/median.h"
#include "bench/other_load.h"
#include "bench/stopwatch.h"

namespace embertable::bench {
namespace {

/// Gradients rotate through more than this, twice the last-level cache of most machines.
constexpr std::size_t kGradientBytes = std::size_t{80} << 20;

/// Threads that still spin for work of the lane before get this long to give up.
constexpr double kPauseSeconds = 100e-6;

/// A lane with the times of its passes.
class TimedLane {
 public:
  explicit TimedLane(std::unique_ptr<Lane> lane) : lane_(std::move(lane)) {}

  void step(std::size_t batch, std::size_t gradient) {
    if (lane_ == nullptr) return;
    Stopwatch pause;
    for (double waited = 0; waited < kPauseSeconds;) waited += pause.lap();
    pass_ += lane_->step(batch, gradient);
  }

  /// Ends a pass and keeps its times if it counts.
  void end_pass(bool counts) {
    if (counts) passes_.push_back(pass_);
    pass_ = {};
  }

  std::optional<LaneSeconds> median() const {
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

 private:
  std::unique_ptr<Lane> lane_;
  StageSeconds pass_;
  std::vector<StageSeconds> passes_;
};

/// The share of the free memory that two copies of the tables may take.
constexpr double kMemoryShare = 0.8;

/// The rows to run with: what was asked for, or the standard ones halved until two copies fit.
std::int64_t choose_rows(const Workload& standard, const BenchOptions& options) {
  if (options.rows > 0) return options.rows;
  const double available = kMemoryShare * static_cast<double>(available_memory_bytes());
  Workload workload = standard;
  while (available > 0 && workload.rows > 1 &&
         2 * static_cast<double>(table_bytes(workload)) > available) {
    workload.rows /= 2;
  }
  return workload.rows;
}

}  // namespace

Workload chosen_workload(const Workload& standard, const BenchOptions& options) {
  Workload workload = standard;
  workload.rows = choose_rows(standard, options);
  if (options.batches > 0) workload.batches = options.batches;
  return workload;
}

WorkloadResult run_workload(const Workload& standard, const BenchOptions& options) {
  WorkloadResult result;
  result.workload = chosen_workload(standard, options);
  result.standard_rows = standard.rows;
  result.threads = options.threads;
  result.repetitions = options.repetitions;

  const Workload& workload = result.workload;
  const std::vector<WorkloadBatch> batches = make_batches(workload);
  result.lookups = count_lookups(batches);
  const GradientBuffers gradients(workload, kGradientBytes);
  const HugePages memory(workload.output_floats() * sizeof(float));
  const LaneInput input{.workload = workload,
                        .batches = batches,
                        .gradients = gradients.buffers(),
                        .activations = {memory.as<float>(), workload.output_floats()},
                        .threads = options.threads};

  TimedLane engine(make_engine_lane(input));
  Team team(options.threads);
  const PlainTables tables(workload, team);
  TimedLane baseline(make_baseline_lane(input, tables, team));
  Limits limits(workload, batches, input.gradients, tables, input.activations, team);

  const OtherLoad other_load;
  std::size_t steps = 0;
  for (int repetition = 0; repetition <= options.repetitions; ++repetition) {
    for (std::size_t batch = 0; batch < batches.size(); ++batch, ++steps) {
      const std::size_t gradient = steps % input.gradients.size();
      engine.step(batch, gradient);
      baseline.step(batch, gradient);
    }
    engine.end_pass(repetition > 0);
    baseline.end_pass(repetition > 0);
    if (repetition > 0) limits.run();
  }
  result.engine = engine.median();
  result.baseline = baseline.median();
  result.limits = limits.median();
  result.other_load = other_load.share();
  return result;
}

}  // namespace embertable::bench
