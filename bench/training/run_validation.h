#pragma once

#include <cstdint>
#include <string>

#include "bench/training/run_load.h"

namespace embertable::bench {

/// Cost of checking a workload's ids and splits: medians over the repetitions of the passes of the
/// library, and of the same library without those checks.
struct ValidationResult {
  Load load;  ///< the load that ran
  int threads = 1;
  int repetitions = 1;
  std::size_t lookups = 0;  ///< lookups of one pass
  LaneSeconds checked;
  LaneSeconds unchecked;
  double cost = 0;        ///< median of the steps' ratios, each of two passes side by side, less 1
  LimitSeconds limits;    ///< limits of this machine for the same bytes
  double other_load = 0;  ///< see OtherLoad
};

/// Runs both libraries alternately, batch by batch, on the same ids and gradients, with tables of
/// their own; the first one changes with every batch. Then runs the limits. Throws
/// std::runtime_error if the library without checks is not in this program's folder.
ValidationResult run_validation(const Load& standard, const BenchOptions& options);

std::string to_text(const ValidationResult& result);

/// Returns one JSON object on one line; times in ns per lookup.
std::string to_json(const ValidationResult& result);

}  // namespace embertable::bench
