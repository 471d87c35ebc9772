#include "kernels/finite.h"

#define EMBERTABLE_LEVEL_BODY "kernels/finite.inl"
#include "kernels/for_each_level.inl"

namespace embertable {

std::int64_t first_not_finite(const float* values, std::int64_t count, SimdLevel level) noexcept {
  return EMBERTABLE_AT_LEVEL(level, first_not_finite(values, count));
}

}  // namespace embertable
