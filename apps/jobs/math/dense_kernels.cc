#include "apps/jobs/math/dense_kernels.h"

#define EMBERTABLE_LEVEL_BODY "apps/jobs/math/dense_kernels.inl"
#include "kernels/for_each_level.inl"

namespace embertable::jobs {

void product(const Product& p, SimdLevel level) noexcept {
  EMBERTABLE_AT_LEVEL(level, multiply(p));
}

void add_dots(const AddDots& args, SimdLevel level) noexcept {
  EMBERTABLE_AT_LEVEL(level, add_dots(args));
}

void adagrad_step(const AdagradStep& args, SimdLevel level) noexcept {
  EMBERTABLE_AT_LEVEL(level, adagrad_step(args));
}

void slope_rows(const SlopeRows& args, SimdLevel level) noexcept {
  EMBERTABLE_AT_LEVEL(level, slope_rows(args));
}

}  // namespace embertable::jobs
