#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "bench/memory.h"
#include "bench/workload.h"

namespace embertable::bench {

/// Gradients of a training load rotate through more than this.
inline constexpr std::size_t kGradientBytes = std::size_t{80} << 20;

/// Gradients for steps to use in turn: so many of them that no cache still holds one when its turn
/// comes again.
class GradientBuffers {
 public:
  /// For a batch of the workload: together at least min_bytes, and at least two. Values are small
  /// and the same in every run.
  GradientBuffers(const Workload& workload, std::size_t min_bytes)
      : GradientBuffers(workload.output_floats(), min_bytes) {}

  /// Each of so many floats.
  GradientBuffers(std::size_t floats, std::size_t min_bytes);

  /// Each of as many floats as was asked for.
  std::span<const std::span<const float>> buffers() const { return buffers_; }

 private:
  HugePages memory_;
  std::vector<std::span<const float>> buffers_;
};

}  // namespace embertable::bench
