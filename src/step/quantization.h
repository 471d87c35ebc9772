#pragma once

#include <optional>

#include "embertable/config.h"
#include "kernels/gather/gather.h"

namespace embertable {

/// Returns the grid to which a table's values are rounded when they are looked up; without a
/// configuration they stay as they are.
inline Grid grid_of(const std::optional<QuantizationConfig>& quantization) {
  if (!quantization) return {};
  const float steps = static_cast<float>(quantization->num_buckets - 1);
  return {.lower = quantization->lower,
          .upper = quantization->upper,
          .step = (quantization->upper - quantization->lower) / steps};
}

}  // namespace embertable
