#include "kernels/gather/gather_types.h"

#define EMBERTABLE_LEVEL_BODY "kernels/gather/gather.inl"
#include "kernels/for_each_level.inl"

namespace embertable {

void gather_int8_rows(const Gather<std::uint64_t>& args, SimdLevel level) noexcept {
  if (level == SimdLevel::kAvx512) return avx512::gather_rows<avx512::ScaledRow>(args);
  if (level == SimdLevel::kAvx2) return avx2::gather_rows<avx2::ScaledRow>(args);
  scalar::gather_rows<scalar::ScaledRow>(args);
}

}  // namespace embertable
