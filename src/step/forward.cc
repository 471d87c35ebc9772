#include "step/forward.h"

#include <algorithm>

#include "base/assert.h"
#include "base/entries.h"

namespace embertable {
namespace {

GatheredRows gathered_rows(const LookupItem& item) {
  return {.table = item.rows.row,
          .stride = item.rows.stride,
          .received = item.received,
          .dim = item.rows.dim};
}

SoonGathered soon(const LookupItem& item) {
  const LookupPlan& plan = *item.plan;
  const std::int64_t begin = plan.first_entry(item.first), end = plan.first_entry(item.last);
  const void* row = plan.row.wide ? static_cast<const void*>(plan.row.as<std::uint64_t>() + begin)
                                  : static_cast<const void*>(plan.row.as<std::uint32_t>() + begin);
  return {.rows = gathered_rows(item), .row = row, .wide = plan.row.wide, .count = end - begin};
}

template <class T>
const T* data_or_null(std::span<const T> values) {
  return values.empty() ? nullptr : values.data();
}

template <class Index>
void gather_item(const LookupItem& item, const LookupItem* next, SimdLevel level) noexcept {
  const LookupPlan& plan = *item.plan;
  Gather<Index> args = {.rows = gathered_rows(item),
                        .grid = item.grid,
                        .row = plan.row.as<Index>(),
                        .split = data_or_null(plan.split),
                        .weight = data_or_null(plan.weight),
                        .denominator = data_or_null(plan.denominator),
                        .out = item.out,
                        .first = item.first,
                        .last = item.last};
  if (next != nullptr && next->first < next->last) args.next = soon(*next);
  gather(args, level);
}

template <class Index, bool kGain>
void scatter_as(const ScatterItem& item) noexcept {
  const LookupPlan& plan = *item.plan;
  const UpdatePlan& update = *item.update;
  const Index* row = plan.row.as<Index>();
  auto* entry = static_cast<UpdateEntry<Index>*>(update.entry);
  float* gain = update.gain;
  const auto buckets = static_cast<std::uint32_t>(update.buckets());
  const std::int64_t first = item.tile * kTileRows,
                     last = std::min(first + kTileRows, plan.outputs);
  std::int64_t j = plan.first_entry(first);
  auto one_cursor = static_cast<std::uint32_t>(item.first_entry + j);
  std::uint32_t* cursor =
      buckets > 1 ? plan.counts.data() + item.tile * plan.counts_stride : &one_cursor;

  auto out = static_cast<std::uint32_t>(item.first_piece * kPieceRows + first);
  for (std::int64_t i = first; i < last; ++i, ++out) {
    for (const std::int64_t end = plan.first_entry(i + 1); j < end; ++j) {
      const std::uint32_t k = cursor[bucket_of(row[j], buckets)]++;
      entry[k] = {row[j], out};
      if constexpr (kGain) gain[k] = plan.gain(i, j);
    }
  }
}

}  // namespace

void look_up(const LookupItem& item, const LookupItem* next, SimdLevel level) noexcept {
  if (item.first >= item.last) return;
  if (item.plan->row.wide)
    gather_item<std::uint64_t>(item, next, level);
  else
    gather_item<std::uint32_t>(item, next, level);
}

void scatter(const ScatterItem& item) noexcept {
  const bool wide = item.update->wide, gain = item.update->gain != nullptr;
  EMBERTABLE_ASSERT(item.plan->row.wide == wide);
  if (wide)
    gain ? scatter_as<std::uint64_t, true>(item) : scatter_as<std::uint64_t, false>(item);
  else
    gain ? scatter_as<std::uint32_t, true>(item) : scatter_as<std::uint32_t, false>(item);
}

}  // namespace embertable
