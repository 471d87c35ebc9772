#pragma once

#include <cstdint>
#include <optional>

#include "bench/limits.h"
#include "bench/timed_lane.h"
#include "bench/workload.h"

namespace embertable::bench {

/// What one workload gave.
struct WorkloadResult {
  Workload workload;               ///< as it ran
  std::int64_t standard_rows = 0;  ///< rows of the workload by its definition
  int threads = 1;
  int repetitions = 1;
  std::size_t lookups = 0;              ///< of one pass
  std::optional<LaneSeconds> engine;    ///< the library
  std::optional<LaneSeconds> baseline;  ///< unset where its kernels cannot run
  LimitSeconds limits;
  double other_load = 0;  ///< see OtherLoad, over the repetitions
};

struct BenchOptions {
  int threads = 1;
  int repetitions = 5;
  std::int64_t rows = 0;  ///< per table; 0: the workload's, halved until two copies fit in memory
  std::int32_t batches = 0;  ///< 0: the workload's
};

/// The workload with the rows and batches that were asked for, else its rows halved until two
/// copies of the tables fit in memory. Throws std::runtime_error where the rows that were asked for
/// do not.
Workload chosen_workload(const Workload& standard, const BenchOptions& options);

/// Runs a standard workload: one pass that is not counted, then the repetitions. In each, library
/// and baseline take turns batch by batch, half a pass apart on the same ids and gradients, each
/// with tables of its own; then the limits run.
WorkloadResult run_workload(const Workload& standard, const BenchOptions& options);

}  // namespace embertable::bench
