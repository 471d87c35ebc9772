#include "kernels/hot_row.h"

#define EMBERTABLE_LEVEL_BODY "kernels/hot_row.inl"
#include "kernels/for_each_level.inl"

namespace embertable {

template <class Index>
std::int64_t sum_hot_row(const HotRowSum<Index>& args, SimdLevel level) noexcept {
  return EMBERTABLE_AT_LEVEL(level, sum_hot_row(args));
}
template std::int64_t sum_hot_row(const HotRowSum<std::uint32_t>&, SimdLevel) noexcept;
template std::int64_t sum_hot_row(const HotRowSum<std::uint64_t>&, SimdLevel) noexcept;

template <class Index>
std::int64_t leave_out(const LeaveOut<Index>& args, SimdLevel level) noexcept {
  return EMBERTABLE_AT_LEVEL(level, leave_out(args));
}
template std::int64_t leave_out(const LeaveOut<std::uint32_t>&, SimdLevel) noexcept;
template std::int64_t leave_out(const LeaveOut<std::uint64_t>&, SimdLevel) noexcept;

}  // namespace embertable
