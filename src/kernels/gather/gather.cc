#include "kernels/gather/gather.h"

namespace embertable {
namespace {

/// The arguments of `gather`, with row numbers of either type.
struct GatherArgs {
  const GatheredRows& rows;
  const Grid& grid;
  const void* row;
  bool wide;  ///< row numbers are uint64_t, else uint32_t
  const std::int64_t* split;
  const float* weight;
  const float* denominator;
  float* out;
  std::int64_t first, last;
  const SoonGathered& next;
  bool outputs_ahead;
  bool streams;
};

}  // namespace
}  // namespace embertable

#define EMBERTABLE_LEVEL_BODY "kernels/gather/gather.inl"
#include "kernels/for_each_level.inl"

namespace embertable {

template <class Index>
void gather(const Gather<Index>& args, SimdLevel level) noexcept {
  const GatherArgs any = {.rows = args.rows,
                          .grid = args.grid,
                          .row = args.row,
                          .wide = sizeof(Index) == sizeof(std::uint64_t),
                          .split = args.split,
                          .weight = args.weight,
                          .denominator = args.denominator,
                          .out = args.out,
                          .first = args.first,
                          .last = args.last,
                          .next = args.next,
                          .outputs_ahead = args.outputs_ahead,
                          .streams = args.streams};
  EMBERTABLE_AT_LEVEL(level, gather_any(any));
}
template void gather(const Gather<std::uint32_t>&, SimdLevel) noexcept;
template void gather(const Gather<std::uint64_t>&, SimdLevel) noexcept;

}  // namespace embertable
