#include "kernels/gather/gather_types.h"

#define EMBERTABLE_LEVEL_BODY "kernels/gather/gather.inl"
#include "kernels/for_each_level.inl"

namespace embertable {

template <class Index>
void gather_half_rows(const Gather<Index>& args, SimdLevel level) noexcept {
  if (level == SimdLevel::kAvx512)
    return avx512::gather_rows<avx512::PlainRow<std::uint16_t>>(args);
  if (level == SimdLevel::kAvx2) return avx2::gather_rows<avx2::PlainRow<std::uint16_t>>(args);
  scalar::gather_rows<scalar::PlainRow<std::uint16_t>>(args);
}
template void gather_half_rows(const Gather<std::uint32_t>&, SimdLevel) noexcept;
template void gather_half_rows(const Gather<std::uint64_t>&, SimdLevel) noexcept;

}  // namespace embertable
