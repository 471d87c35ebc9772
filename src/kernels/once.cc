#include "kernels/once.h"

#include "kernels/few_counts.h"

#define EMBERTABLE_LEVEL_BODY "kernels/once.inl"
#include "kernels/for_each_level.inl"

namespace embertable {

template <class Index>
void see_rows(const SeeRows<Index>& args, SimdLevel level) noexcept {
  EMBERTABLE_AT_LEVEL(level, see_rows(args));
}
void join_filters(const JoinFilters& args, SimdLevel level) noexcept {
  EMBERTABLE_AT_LEVEL(level, join_filters(args));
}
template <class Index>
void set_once_apart(const SetOnceApart<Index>& args, SimdLevel level) noexcept {
  EMBERTABLE_AT_LEVEL(level, set_once_apart(args));
}
template void see_rows(const SeeRows<std::uint32_t>&, SimdLevel) noexcept;
template void see_rows(const SeeRows<std::uint64_t>&, SimdLevel) noexcept;
template void set_once_apart(const SetOnceApart<std::uint32_t>&, SimdLevel) noexcept;
template void set_once_apart(const SetOnceApart<std::uint64_t>&, SimdLevel) noexcept;

}  // namespace embertable
