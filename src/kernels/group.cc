#include "kernels/group.h"

#define EMBERTABLE_LEVEL_BODY "kernels/group.inl"
#include "kernels/for_each_level.inl"

namespace embertable {

template <class Index>
GroupedEntries<Index> group(const Group<Index>& args, SimdLevel level) noexcept {
  return EMBERTABLE_AT_LEVEL(level, group(args));
}
template <class Index>
void find_first(const Group<Index>& args, SimdLevel level) noexcept {
  EMBERTABLE_AT_LEVEL(level, find_first(args));
}
template <class Index>
void take_apart(const TakeApart<Index>& args, SimdLevel level) noexcept {
  EMBERTABLE_AT_LEVEL(level, take_apart(args));
}
template GroupedEntries<std::uint32_t> group(const Group<std::uint32_t>&, SimdLevel) noexcept;
template GroupedEntries<std::uint64_t> group(const Group<std::uint64_t>&, SimdLevel) noexcept;
template void find_first(const Group<std::uint32_t>&, SimdLevel) noexcept;
template void find_first(const Group<std::uint64_t>&, SimdLevel) noexcept;
template void take_apart(const TakeApart<std::uint32_t>&, SimdLevel) noexcept;
template void take_apart(const TakeApart<std::uint64_t>&, SimdLevel) noexcept;

}  // namespace embertable
