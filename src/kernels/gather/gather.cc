#include "kernels/gather/gather.h"

#include "kernels/gather/gather_types.h"

#define EMBERTABLE_LEVEL_BODY "kernels/gather/gather.inl"
#include "kernels/for_each_level.inl"

namespace embertable {

template <class Index>
void gather(const Gather<Index>& args, SimdLevel level) noexcept {
  if (args.rows.type == RowType::kBfloat16) return gather_half_rows(args, level);
  if constexpr (sizeof(Index) == sizeof(std::uint64_t)) {  // only serving has such rows
    if (args.rows.type == RowType::kInt8) return gather_int8_rows(args, level);
  }
  if (level == SimdLevel::kAvx512) return avx512::gather_rows<avx512::PlainRow<float>>(args);
  if (level == SimdLevel::kAvx2) return avx2::gather_rows<avx2::PlainRow<float>>(args);
  scalar::gather_rows<scalar::PlainRow<float>>(args);
}
template void gather(const Gather<std::uint32_t>&, SimdLevel) noexcept;
template void gather(const Gather<std::uint64_t>&, SimdLevel) noexcept;

}  // namespace embertable
