#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace embertable::bench {

struct ServingBenchOptions {
  /// Lookups of one sample that are timed, each for itself.
  std::int64_t calls = 100'000;

  /// Where a checkpoint is written, opened and removed. Empty: opening is not measured.
  std::filesystem::path directory;

  /// Of the rows of that checkpoint.
  std::int64_t bytes = std::int64_t{4} << 30;
};

/// Times single samples and batches of 1,024 through the public functions, beside a bare copy of
/// the same rows; and the opening of a checkpoint. Text for people, or one JSON object a line.
std::string run_serving(const ServingBenchOptions& options, bool json);

}  // namespace embertable::bench
