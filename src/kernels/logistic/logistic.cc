#include "kernels/logistic/logistic.h"

#define EMBERTABLE_LEVEL_BODY "kernels/logistic/logistic_level.inl"
#include "kernels/for_each_level.inl"

namespace embertable {

void logistic(const Logistic& args, SimdLevel level) noexcept {
  EMBERTABLE_AT_LEVEL(level, run(args));
}

}  // namespace embertable
