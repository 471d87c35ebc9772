#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace embertable::bench {

struct CheckpointBenchOptions {
  double gib = 1;  ///< rows and slots
  int threads = 1;
  int repetitions = 3;
  std::filesystem::path directory;  ///< existing directory; files written to it are removed
};

/// Median seconds of one whole pass.
struct CheckpointSeconds {
  double plain = 0;  ///< for plain files of the same size
  double ours = 0;
};

struct CheckpointResult {
  std::int64_t rows = 0;
  std::int64_t bytes = 0;  ///< size of the checkpoint's files
  int threads = 1;
  int repetitions = 1;
  CheckpointSeconds save;          ///< flushed to the disk
  CheckpointSeconds restore_cold;  ///< the kernel has forgotten the files
  CheckpointSeconds restore_warm;
  double reused_buffer = 0;      ///< seconds of a warm plain read that keeps nothing
  std::int64_t table_bytes = 0;  ///< bytes that an engine maps for tables and slots
  std::int64_t peak_bytes = 0;   ///< most resident bytes of a process that restores
  double other_load = 0;         ///< see OtherLoad
};

/// Saves and restores one table of dim 64 with Adagrad, whose slots are between the rows,
/// alternating with plain files of the same size, which are read into new memory. Each restore is
/// into a new object. Throws std::runtime_error if the restored values differ.
CheckpointResult run_checkpoint_bench(const CheckpointBenchOptions& options);

/// Restores the table of these options from a run, and prints the peak number of bytes that this
/// process held. The benchmark starts a process of its own that does only this.
void restore_once(const std::filesystem::path& run, const CheckpointBenchOptions& options);

std::string to_text(const CheckpointResult& result);

/// Returns one JSON object on one line: seconds and GiB/s.
std::string to_json(const CheckpointResult& result);

}  // namespace embertable::bench
