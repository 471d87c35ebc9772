#pragma once

#include <cstdint>
#include <string>

namespace embertable::bench {

struct OptimizerBenchOptions {
  int threads = 1;
  int repetitions = 5;
  std::string rule;                  ///< only this one; empty: every rule
  std::int64_t mib = 1024;           ///< of the rows and slots of a table
  std::int64_t step_rows = 500'000;  ///< per table of the step on W1
};

/// For each rule and D = 16, 64, 256 the unique rows that a second's update takes (grouping the
/// entries of a batch of distinct rows, summing, applying the rule), beside the rate at which
/// this machine reads and writes the same rows and slots, measured in turns; and what the
/// division unit allows. Prints text for people, or one JSON object a line.
void run_optimizers(const OptimizerBenchOptions& options, bool json);

/// Whole steps of W1 under full Adagrad and Adam, each in turns with row-wise Adagrad; or under
/// the chosen rule. Prints as above.
void run_optimizer_steps(const OptimizerBenchOptions& options, bool json);

}  // namespace embertable::bench
