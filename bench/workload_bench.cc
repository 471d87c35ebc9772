#include "bench/workload_bench.h"

#include <fmt/format.h>

#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "bench/other_load.h"

namespace embertable::bench {
namespace {

/// The share of the free memory that two copies of the tables may take.
constexpr double kMemoryShare = 0.8;

/// The rows to run with: what was asked for, or the standard ones halved until two copies fit.
std::int64_t choose_rows(const Workload& standard, const BenchOptions& options) {
  const auto free_bytes = static_cast<double>(available_memory_bytes());
  Workload workload = standard;
  if (options.rows > 0) {
    workload.rows = options.rows;
    const double needed = 2 * static_cast<double>(table_bytes(workload));
    if (free_bytes > 0 && needed > kMemoryShare * free_bytes)
      throw std::runtime_error(fmt::format(
          "{}: two copies of {} tables of {} rows need {:.1f} GB, more than {:.0f} % of the {:.1f} "
          "GB that are free",
          workload.name, workload.tables, workload.rows, needed * 1e-9, kMemoryShare * 100,
          free_bytes * 1e-9));
    return options.rows;
  }
  const double available = kMemoryShare * free_bytes;
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
  const LaneData data(workload, options.threads);
  const LaneInput& input = data.input();
  result.lookups = count_lookups(input.batches);

  TimedLane engine(make_engine_lane(input));
  Team team(options.threads);
  const PlainTables tables(workload, team);
  TimedLane baseline(make_baseline_lane(input, tables, team));
  Limits limits(workload, input.batches, input.gradients, tables, input.activations, team);

  const OtherLoad other_load;
  std::size_t steps = 0;
  // Half a turn apart: whoever comes second shall not find the ids and gradients in a cache.
  const std::size_t batches = input.batches.size(), gradients = input.gradients.size();
  const std::size_t batches_apart = (batches + 1) / 2, gradients_apart = (gradients + 1) / 2;
  for (int repetition = 0; repetition <= options.repetitions; ++repetition) {
    for (std::size_t batch = 0; batch < batches; ++batch, ++steps) {
      engine.step(batch, steps % gradients);
      baseline.step((batch + batches_apart) % batches, (steps + gradients_apart) % gradients);
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
