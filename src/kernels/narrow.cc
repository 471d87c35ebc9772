#include "kernels/narrow.h"

#include "kernels/few_counts.h"

#define EMBERTABLE_LEVEL_BODY "kernels/narrow.inl"
#include "kernels/for_each_level.inl"

namespace embertable {

template <class Id, class Index>
bool narrow(const Narrow<Id, Index>& args, SimdLevel level) noexcept {
  return EMBERTABLE_AT_LEVEL(level, narrow(args));
}
template <class Split>
SplitsSeen copy_splits(const CopySplits<Split>& args, SimdLevel level) noexcept {
  return EMBERTABLE_AT_LEVEL(level, copy_splits(args));
}
template <class Index>
void count_buckets(const CountBuckets<Index>& args, SimdLevel level) noexcept {
  EMBERTABLE_AT_LEVEL(level, count_buckets(args));
}
template <class Index>
void number_buckets(const NumberBuckets<Index>& args, SimdLevel level) noexcept {
  EMBERTABLE_AT_LEVEL(level, number_buckets(args));
}

template bool narrow(const Narrow<std::int32_t, std::uint32_t>&, SimdLevel) noexcept;
template bool narrow(const Narrow<std::int32_t, std::uint64_t>&, SimdLevel) noexcept;
template bool narrow(const Narrow<std::int64_t, std::uint32_t>&, SimdLevel) noexcept;
template bool narrow(const Narrow<std::int64_t, std::uint64_t>&, SimdLevel) noexcept;
template SplitsSeen copy_splits(const CopySplits<std::int32_t>&, SimdLevel) noexcept;
template SplitsSeen copy_splits(const CopySplits<std::int64_t>&, SimdLevel) noexcept;
template void count_buckets(const CountBuckets<std::uint32_t>&, SimdLevel) noexcept;
template void count_buckets(const CountBuckets<std::uint64_t>&, SimdLevel) noexcept;
template void number_buckets(const NumberBuckets<std::uint32_t>&, SimdLevel) noexcept;
template void number_buckets(const NumberBuckets<std::uint64_t>&, SimdLevel) noexcept;

}  // namespace embertable
