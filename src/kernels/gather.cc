#include "kernels/gather.h"

#define EMBERTABLE_LEVEL_BODY "kernels/gather.inl"
#include "kernels/for_each_level.inl"

namespace embertable {

template <class Index>
void gather(const Gather<Index>& args, SimdLevel level) noexcept {
  EMBERTABLE_AT_LEVEL(level, gather(args));
}
template void gather(const Gather<std::uint32_t>&, SimdLevel) noexcept;
template void gather(const Gather<std::uint64_t>&, SimdLevel) noexcept;

}  // namespace embertable
