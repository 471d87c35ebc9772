#include "apps/jobs/models/mf_block.h"

#define EMBERTABLE_LEVEL_BODY "apps/jobs/models/mf_block.inl"
#include "kernels/for_each_level.inl"

namespace embertable::jobs {

void mf_predict(const MfBlock& block, float* out, SimdLevel level) noexcept {
  EMBERTABLE_AT_LEVEL(level, predict(block, out));
}

double mf_gradients(const MfBlock& block, SimdLevel level) noexcept {
  return EMBERTABLE_AT_LEVEL(level, gradients(block));
}

}  // namespace embertable::jobs
