#pragma once

#include <cstdint>
#include <string>

namespace embertable::bench {

struct OptimizerBenchOptions {
  int threads = 1;
  int repetitions = 5;
  std::string rule;                  ///< only this one; empty: every rule
  std::int64_t mib = 1024;           ///< size of a table with its slots
  std::int64_t step_rows = 500'000;  ///< rows of each table of W1 in whole steps
};

/// Measures, for each rule and D = 16, 64, 256, how many unique rows per second the update
/// processes (grouping the entries of a batch of distinct rows, summing, applying the rule),
/// alternating with the rate at which this machine reads and writes the same rows and slots; and
/// the limit of the division unit. Prints text for people, or one JSON object per line.
void run_optimizers(const OptimizerBenchOptions& options, bool json);

/// Measures whole steps of W1 with full Adagrad and Adam, or with the chosen rule, each alternating
/// with row-wise Adagrad. Prints as run_optimizers does.
void run_optimizer_steps(const OptimizerBenchOptions& options, bool json);

}  // namespace embertable::bench
