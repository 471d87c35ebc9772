#include "kernels/gather/gather.h"

#include <cstring>
#include <type_traits>

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
  bool bursts;
  bool streams;
};

}  // namespace
}  // namespace embertable

#define EMBERTABLE_LEVEL_BODY "kernels/gather/gather.inl"
#include "kernels/for_each_level.inl"

namespace embertable {
namespace {

/// Copies of at most this many rows take less time than what fetching ahead would prepare.
constexpr std::int64_t kFewCopies = 8;

template <class Index>
bool is_few_copies(const Gather<Index>& args) noexcept {
  return args.last - args.first <= kFewCopies && args.next.count == 0 && args.split == nullptr &&
         args.weight == nullptr && args.denominator == nullptr && args.grid.step == 0 &&
         args.rows.type == RowType::kFloat32 && args.rows.received == nullptr;
}

template <class Index>
void gather_few_copies(const Gather<Index>& args) noexcept {
  const auto* const table = static_cast<const float*>(args.rows.table);
  const std::int64_t dim = args.rows.dim;
  for (std::int64_t i = args.first; i < args.last; ++i)
    std::memcpy(args.out + i * dim,
                table + static_cast<std::int64_t>(args.row[i]) * args.rows.stride,
                static_cast<std::size_t>(dim) * sizeof(float));
}

}  // namespace

template <class Index>
void gather(const Gather<Index>& args, SimdLevel level) noexcept {
  if (is_few_copies(args)) return gather_few_copies(args);
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
                          .bursts = args.bursts,
                          .streams = args.streams};
  EMBERTABLE_AT_LEVEL(level, gather_any(any));
}
template void gather(const Gather<std::uint32_t>&, SimdLevel) noexcept;
template void gather(const Gather<std::uint64_t>&, SimdLevel) noexcept;

}  // namespace embertable
