#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace embertable::bench {

/// One workload of a run, as `--json` printed it.
struct RunRatios {
  std::string workload;
  std::int64_t threads = 0;
  std::int64_t rows = 0;  ///< rows of each table
  std::int64_t batches = 0;
  std::string row_type = "float32";
  bool steps_alone = false;
  std::string machine;    ///< empty if the run does not say
  double other_load = 0;  ///< see OtherLoad
  double limit = 0;       ///< step / step_limit
  double all_bytes = 0;   ///< step / step_limit_all_bytes
};

/// Reads a run from `text`, one object per line. Throws std::runtime_error with `name`, the line
/// and what is wrong there, or if there is no line.
std::vector<RunRatios> read_run(const std::string& text, const std::string& name);

/// Comparison of the ratios of two runs.
struct RunComparison {
  std::vector<std::string> lines;           ///< for people: each workload of either run, then notes
  std::vector<std::string> slower, faster;  ///< workloads that moved
  int compared = 0;                         ///< workloads in both runs
};

/// Compares a run with an earlier one by the ratios of its steps to the limits of the same run,
/// because rates change with the machine. A workload moved if both ratios changed by more than 10
/// %; if only one changed, its limit was measured differently. Workloads with other threads, rows,
/// batches or row types, or with other bytes between steps, are other loads and are not compared.
RunComparison compare_runs(std::span<const RunRatios> before, std::span<const RunRatios> now);

}  // namespace embertable::bench
