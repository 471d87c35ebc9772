#include "bench/bare_loops.h"

#define EMBERTABLE_LEVEL_BODY "bench/bare_loops.inl"
#include "kernels/for_each_level.inl"

namespace embertable::bench {

float bare_gather(const BareGather& part, SimdLevel level) noexcept {
  return EMBERTABLE_AT_LEVEL(level, bare_gather(part));
}
float bare_update(const BareUpdate& part, SimdLevel level) noexcept {
  return EMBERTABLE_AT_LEVEL(level, bare_update(part));
}

}  // namespace embertable::bench
