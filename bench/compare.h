#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace embertable::bench {

/// What a run's object on one workload says, as `--json` prints it.
struct RunRatios {
  std::string workload;
  std::int64_t threads = 0;
  std::int64_t rows = 0;  ///< of each table
  std::int64_t batches = 0;
  std::string machine;    ///< empty where it is not said
  double other_load = 0;  ///< see OtherLoad
  double limit = 0;       ///< step / step_limit
  double all_bytes = 0;   ///< step / step_limit_all_bytes
};

/// `text` holds one object a line. Throws std::runtime_error naming it by `name`, the line and what
/// is wrong there, or that there is none.
std::vector<RunRatios> read_run(const std::string& text, const std::string& name);

/// What became of a run's ratios.
struct RunComparison {
  std::vector<std::string> lines;  ///< for people: each workload of either run, then what to mind
  std::vector<std::string> slower, faster;  ///< workloads that moved
  int compared = 0;                         ///< workloads
};

/// Holds a run against one that was stored before: by the ratios of a step to the limits of its own
/// run, since rates change with the machine. A workload moved if both ratios changed by more than
/// 10 %; one that changes alone is a limit that was measured otherwise. Other threads, rows or
/// batches are another load, which is not compared.
RunComparison compare_runs(std::span<const RunRatios> before, std::span<const RunRatios> now);

}  // namespace embertable::bench
