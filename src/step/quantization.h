#pragma once

#include <optional>

#include "embertable/config.h"
#include "kernels/gather.h"

namespace embertable {

/// The numbers that those of a table count as when they are looked up; without a configuration as
/// themselves.
inline Grid grid_of(const std::optional<QuantizationConfig>& quantization) {
  if (!quantization) return {};
  const float steps = static_cast<float>(quantization->num_buckets - 1);
  return {.lower = quantization->lower,
          .upper = quantization->upper,
          .step = (quantization->upper - quantization->lower) / steps};
}

}  // namespace embertable
