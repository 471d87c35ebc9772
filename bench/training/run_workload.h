#pragma once

#include <string>

#include "bench/training/run_load.h"

namespace embertable::bench {

/// What one standard workload gave.
struct WorkloadResult {
  Load load;                       ///< the load that ran
  std::int64_t standard_rows = 0;  ///< rows of a table by the workload's definition
  BenchOptions options;
  LoadResult result;
};

/// Runs a standard workload beside both of its limits. Throws std::runtime_error where the rows
/// that were asked for do not fit into memory.
WorkloadResult run_workload(const Load& standard, const BenchOptions& options);

/// A table for people: rates in millions of lookups a second, times in ns per lookup.
std::string to_text(const WorkloadResult& workload);

/// One JSON object on one line. Rates are lookups per second, `stages` are ns per lookup.
std::string to_json(const WorkloadResult& workload);

}  // namespace embertable::bench
