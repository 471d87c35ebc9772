#include "bench/limits/bare_loops.h"

#define EMBERTABLE_LEVEL_BODY "bench/limits/bare_loops.inl"
#include "kernels/for_each_level.inl"

namespace embertable::bench {

float bare_gather(const BareGather& part, SimdLevel level) noexcept {
  return EMBERTABLE_AT_LEVEL(level, bare_gather(part));
}
float bare_update(const BareUpdate& part, SimdLevel level) noexcept {
  return EMBERTABLE_AT_LEVEL(level, bare_update(part));
}
float bare_divide(const float* numbers, std::size_t floats, int divisions, int roots,
                  SimdLevel level) noexcept {
  return EMBERTABLE_AT_LEVEL(level, bare_divide(numbers, floats, divisions, roots));
}

}  // namespace embertable::bench
