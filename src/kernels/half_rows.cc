#include "kernels/half_rows.h"

#include "base/bfloat16.h"

#define EMBERTABLE_LEVEL_BODY "kernels/half_rows.inl"
#include "kernels/for_each_level.inl"

namespace embertable {

void widen_rows(const HalfTile& tile, SimdLevel level) noexcept {
  EMBERTABLE_AT_LEVEL(level, widen_rows(tile));
}
void round_rows(const HalfTile& tile, SimdLevel level) noexcept {
  EMBERTABLE_AT_LEVEL(level, round_rows(tile));
}

}  // namespace embertable
