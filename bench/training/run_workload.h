#pragma once

#include <string>

#include "bench/training/run_load.h"

namespace embertable::bench {

/// Results of one standard workload.
struct WorkloadResult {
  Load load;                       ///< the load that ran
  std::int64_t standard_rows = 0;  ///< rows of a table by the workload's definition
  BenchOptions options;
  LoadResult result;
};

/// Runs a standard workload and both of its limits. Throws std::runtime_error if given rows do not
/// fit into memory.
WorkloadResult run_workload(const Load& standard, const BenchOptions& options);

/// Returns a table for people: rates in millions of lookups per second, times in ns per lookup.
std::string to_text(const WorkloadResult& workload);

/// Returns one JSON object on one line. Rates are lookups per second, `stages` are ns per lookup.
std::string to_json(const WorkloadResult& workload);

}  // namespace embertable::bench
