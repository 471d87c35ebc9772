#include "apps/jobs/models/skipgram_run.h"

#define EMBERTABLE_LEVEL_BODY "apps/jobs/models/skipgram_run.inl"
#include "kernels/for_each_level.inl"

namespace embertable::jobs {

double skipgram_loss(const SkipgramRun& run, SimdLevel level) noexcept {
  return EMBERTABLE_AT_LEVEL(level, loss(run));
}

double skipgram_gradients(const SkipgramRun& run, SimdLevel level) noexcept {
  return EMBERTABLE_AT_LEVEL(level, gradients(run));
}

}  // namespace embertable::jobs
