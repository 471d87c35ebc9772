#include "apps/jobs/math/candidates.h"

#define EMBERTABLE_LEVEL_BODY "apps/jobs/math/candidates.inl"
#include "kernels/for_each_level.inl"

namespace embertable::jobs {

double candidate_gradients(const Candidates& block, SimdLevel level) noexcept {
  return EMBERTABLE_AT_LEVEL(level, gradients(block));
}

}  // namespace embertable::jobs
