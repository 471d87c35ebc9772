#include "kernels/scatter.h"

#define EMBERTABLE_LEVEL_BODY "kernels/scatter.inl"
#include "kernels/for_each_level.inl"

namespace embertable {

void scatter_rows(RowOperation operation, const ScatterRows& args, SimdLevel level) noexcept {
  EMBERTABLE_AT_LEVEL(level, scatter_rows(operation, args));
}

}  // namespace embertable
