#pragma once

#include <cstdint>

#include "kernels/level.h"

namespace embertable {

/// Returns the first i with values[i] infinite or NaN; count if there is none.
std::int64_t first_not_finite(const float* values, std::int64_t count, SimdLevel level) noexcept;

}  // namespace embertable
