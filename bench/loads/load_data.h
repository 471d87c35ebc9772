#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "base/memory.h"
#include "bench/loads/load.h"
#include "bench/loads/random.h"

namespace embertable::bench {

/// Gradients of a training load rotate through at least this much memory.
inline constexpr std::size_t kGradientBytes = std::size_t{80} << 20;

/// Returns the floats of a mapping, from its beginning.
inline float* floats_of(const Mapping& memory) { return reinterpret_cast<float*>(memory.data()); }

/// Maps memory for `count` floats.
inline Mapping map_floats(std::size_t count) {
  return Mapping(static_cast<std::int64_t>(count * sizeof(float)));
}

/// Gradients that steps use in turn, in so many buffers that no cache still holds one when its turn
/// comes again. Values are small and the same in every run.
class GradientBuffers {
 public:
  /// At least two buffers of `floats` each, and at least `min_bytes` together.
  GradientBuffers(std::size_t floats, std::size_t min_bytes) {
    constexpr std::size_t kGapFloats = 528;  // no two buffers start at the same cache set
    const std::size_t bytes = floats * sizeof(float);
    const std::size_t count = std::max<std::size_t>(2, (min_bytes + bytes - 1) / bytes);
    memory_ = map_floats(count * (floats + kGapFloats));
    Random random(5);
    for (std::size_t i = 0; i < count; ++i) {
      const std::span<float> buffer(floats_of(memory_) + i * (floats + kGapFloats), floats);
      for (float& value : buffer) value = static_cast<float>((random.fraction() - 0.5) * 0.01);
      buffers_.push_back(buffer);
    }
  }

  std::size_t size() const { return buffers_.size(); }

  /// Returns the buffer of step `step`, [floats].
  std::span<const float> operator[](std::size_t step) const {
    return buffers_[step % buffers_.size()];
  }

 private:
  Mapping memory_;
  std::vector<std::span<const float>> buffers_;
};

/// A load with everything that its steps need. Lanes and limits borrow it.
struct LoadData {
  explicit LoadData(const Load& of) : LoadData(of, make_load_batches(of)) {}

  /// Uses these batches instead of the load's own.
  LoadData(const Load& of, std::vector<LoadBatch> drawn,
           std::size_t gradient_bytes = kGradientBytes)
      : load(of), batches(std::move(drawn)), gradients(of.output_floats(), gradient_bytes) {}

  Load load;
  std::vector<LoadBatch> batches;
  GradientBuffers gradients;
};

}  // namespace embertable::bench
