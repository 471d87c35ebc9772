#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace embertable::bench {

struct ServingBenchOptions {
  /// Number of lookups of one sample; each is timed for itself.
  std::int64_t calls = 100'000;

  /// A checkpoint is written, opened and removed here. Empty: opening is not measured.
  std::filesystem::path directory;

  /// Size of the rows of that checkpoint.
  std::int64_t bytes = std::int64_t{4} << 30;
};

/// Times single samples and batches of 1,024 through the public functions, beside a bare copy of
/// the same rows; and the opening of a checkpoint. Returns text for people, or one JSON object a
/// line.
std::string run_serving(const ServingBenchOptions& options, bool json);

}  // namespace embertable::bench
