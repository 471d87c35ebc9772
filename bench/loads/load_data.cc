#include "bench/loads/load_data.h"

#include <algorithm>

#include "bench/loads/random.h"

namespace embertable::bench {
namespace {

/// Gap between two buffers, which keeps them from starting at the same cache set.
constexpr std::size_t kGapFloats = 528;

}  // namespace

GradientBuffers::GradientBuffers(std::size_t floats, std::size_t min_bytes) {
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

}  // namespace embertable::bench
