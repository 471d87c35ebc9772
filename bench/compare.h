#pragma once

#include <string>
#include <vector>

#include "bench/workload_bench.h"

namespace embertable::bench {

/// Runs of a stored file, one JSON object a line as `--json` prints them, to hold others against:
/// by the ratio of a step to the limits of its own run, since rates change with the machine.
class StoredRun {
 public:
  /// Throws std::runtime_error naming file and line where it cannot be read.
  explicit StoredRun(const std::string& path);

  /// A line that says what became of a workload's ratios, and whether one moved by more than 10 %.
  struct Comparison {
    std::string text;
    bool slower = false;
    bool faster = false;
  };
  Comparison compare(const WorkloadResult& result) const;

 private:
  struct Ratios {
    std::string workload;
    int threads = 0;
    long long rows = 0;
    double limit = 0;      ///< step / step_limit
    double all_bytes = 0;  ///< step / step_limit_all_bytes
  };
  static Ratios ratios_of(const std::string& json);

  std::vector<Ratios> runs_;
};

}  // namespace embertable::bench
