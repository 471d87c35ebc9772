#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace embertable::bench {

struct ServingBenchOptions {
  /// Number of lookups of one sample; each is timed by itself.
  std::int64_t calls = 100'000;

  /// Directory in which a checkpoint is written, opened and removed. Empty: opening is not
  /// measured.
  std::filesystem::path directory;

  /// Size of the rows of that checkpoint.
  std::int64_t bytes = std::int64_t{4} << 30;
};

/// Times single samples and batches of 1,024 through the public functions, and a bare copy of the
/// same rows; also the opening of a checkpoint. Returns text for people, or one JSON object per
/// line.
std::string run_serving(const ServingBenchOptions& options, bool json);

}  // namespace embertable::bench
