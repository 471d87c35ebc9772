#include "kernels/accumulate.h"

#define EMBERTABLE_LEVEL_BODY "kernels/accumulate.inl"
#include "kernels/for_each_level.inl"

namespace embertable {

void clear_sums(float* sums, std::int64_t count, SimdLevel level) noexcept {
  EMBERTABLE_AT_LEVEL(level, clear_sums(sums, count));
}
void accumulate(const SmallTable* tables, std::int32_t count, SimdLevel level) noexcept {
  EMBERTABLE_AT_LEVEL(level, accumulate(tables, count));
}

}  // namespace embertable
