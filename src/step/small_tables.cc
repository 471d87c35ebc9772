#include "step/small_tables.h"

#include <algorithm>

#include "base/assert.h"
#include "base/entries.h"
#include "kernels/accumulate.h"
#include "kernels/row_tile.h"
#include "kernels/stage_clock.h"

namespace embertable {
namespace {

/// Applies the rule to the rows that are touched. Returns their number.
std::int64_t apply(const TableUpdate& table, const SmallTable& summed, float* wide,
                   SimdLevel level) {
  const RowBlock& rows = table.rows;
  TileInProgress tile(rows, table.update_rows, table.step, wide, level);
  std::int64_t unique = 0;
  for (std::int64_t r = 0; r < rows.rows; ++r) {
    if (summed.touched[r] == 0) continue;
    if (table.touched != nullptr) touch(table, static_cast<std::uint64_t>(r));
    tile.add(static_cast<std::uint64_t>(r), summed.sums + r * padded(rows.dim));
    ++unique;
  }
  tile.finish();
  return unique;
}

}  // namespace

void update_small_tables(const TableUpdate* const* tables, std::int32_t count, std::int64_t* unique,
                         GroupScratch& scratch, SimdLevel level) noexcept {
  EMBERTABLE_ASSERT(count <= kMaxSideBySide);
  StageLap lap;
  SmallTable small[kMaxSideBySide];
  float* sums = scratch.sums();
  std::uint8_t* touched = scratch.touched();
  for (std::int32_t t = 0; t < count; ++t) {
    const TableUpdate& table = *tables[t];
    const LookupPlan& plan = *table.plan.direct;
    const GradientSource& gradients = table.gradients;
    EMBERTABLE_ASSERT(!plan.row.wide && plan.row.size > 0 && plan.row.size <= kPieceRows);
    const bool one_base = gradients.base != nullptr;
    small[t] = {.row = plan.row.as<std::uint32_t>(),
                .outputs = plan.row.size,
                .gradient = one_base ? gradients.base : gradients.piece[0].base,
                .stride = one_base ? gradients.stride : gradients.piece[0].stride,
                .dim = table.rows.dim,
                .sums = sums,
                .touched = touched};
    const std::int64_t floats = table.rows.rows * padded(table.rows.dim);
    clear_sums(sums, floats, level);
    std::fill_n(touched, table.rows.rows, std::uint8_t{0});
    sums += floats;
    touched += table.rows.rows;
  }
  EMBERTABLE_ASSERT(sums - scratch.sums() <= scratch.num_sums() &&
                    touched - scratch.touched() <= scratch.num_touched());

  accumulate(small, count, level);
  for (std::int32_t t = 0; t < count; ++t) {
    float* const wide = tables[t]->gives_sums ? nullptr : scratch.wide_rows();
    unique[t] = apply(*tables[t], small[t], wide, level);
  }
  lap.to(StepStage::kSumAndUpdate);
}

}  // namespace embertable
