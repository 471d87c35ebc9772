#include "step/small_tables.h"

#include <algorithm>

#include "base/assert.h"
#include "base/entries.h"
#include "kernels/accumulate.h"
#include "kernels/row_tile.h"
#include "kernels/stage_clock.h"

namespace embertable {
namespace {

/// A small table in update_small_tables.
struct Accumulating {
  const TableUpdate* table;
  std::int64_t outputs;
  float* sums;
  float* totals;  ///< sums of the pieces before, or null: there is one piece
  std::uint8_t* touched;

  std::int64_t floats() const { return table->rows.rows * padded(table->rows.dim); }
  std::int64_t pieces() const { return (outputs + kPieceRows - 1) / kPieceRows; }

  /// Returns the part that accumulates next.
  SmallTable part(std::int64_t piece) const {
    const std::int64_t first = piece * kPieceRows;
    const GradientSource& g = table->gradients;
    return {.row = table->plan.direct->row.as<std::uint32_t>() + first,
            .outputs = std::min(outputs - first, kPieceRows),
            .gradient = g.base != nullptr ? g.base + first * g.stride : g.piece[piece].base,
            .stride = g.base != nullptr ? g.stride : g.piece[piece].stride,
            .dim = table->rows.dim,
            .sums = sums,
            .touched = touched};
  }

  /// Applies the rule. Returns the number of rows that it was applied to.
  std::int64_t apply(float* wide, SimdLevel level) const {
    const RowBlock& rows = table->rows;
    const float* gradient = totals != nullptr ? totals : sums;
    TileInProgress tile(rows, table->update_rows, table->step, wide, level);
    std::int64_t unique = 0;
    for (std::int64_t r = 0; r < rows.rows; ++r) {
      if (touched[r] == 0) continue;
      if (table->touched != nullptr) touch(*table, static_cast<std::uint64_t>(r));
      tile.add(static_cast<std::uint64_t>(r), gradient + r * padded(rows.dim));
      ++unique;
    }
    tile.finish();
    return unique;
  }
};

}  // namespace

void update_small_tables(const TableUpdate* const* tables, std::int32_t count, std::int64_t* unique,
                         GroupScratch& scratch, SimdLevel level) noexcept {
  EMBERTABLE_ASSERT(count <= kMaxSideBySide);
  StageLap lap;
  Accumulating accumulating[kMaxSideBySide];
  float* sums = scratch.sums();
  std::uint8_t* touched = scratch.touched();
  std::int64_t pieces = 0;
  for (std::int32_t t = 0; t < count; ++t) {
    Accumulating& a = accumulating[t];
    const LookupPlan& plan = *tables[t]->plan.direct;
    EMBERTABLE_ASSERT(!plan.row.wide);
    a = {.table = tables[t],
         .outputs = plan.row.size,
         .sums = sums,
         .totals = nullptr,
         .touched = touched};
    pieces = std::max(pieces, a.pieces());
    if (a.pieces() > 1) a.totals = sums + a.floats();
    const std::int64_t floats = a.floats() * (a.pieces() > 1 ? 2 : 1);
    clear_sums(sums, floats, level);
    std::fill_n(touched, tables[t]->rows.rows, std::uint8_t{0});
    sums += floats;
    touched += tables[t]->rows.rows;
  }
  EMBERTABLE_ASSERT(sums - scratch.sums() <= scratch.num_sums() &&
                    touched - scratch.touched() <= scratch.num_touched());

  for (std::int64_t piece = 0; piece < pieces; ++piece) {
    SmallTable parts[kMaxSideBySide];
    std::int32_t taking_part = 0;
    for (std::int32_t t = 0; t < count; ++t)
      if (piece < accumulating[t].pieces()) parts[taking_part++] = accumulating[t].part(piece);
    accumulate(parts, taking_part, level);
    for (std::int32_t t = 0; t < count; ++t) {
      const Accumulating& a = accumulating[t];
      if (a.totals != nullptr && piece < a.pieces()) end_piece(a.totals, a.sums, a.floats(), level);
    }
  }
  for (std::int32_t t = 0; t < count; ++t) {
    float* const wide = tables[t]->gives_sums ? nullptr : scratch.wide_rows();
    unique[t] = accumulating[t].apply(wide, level);
  }
  lap.to(StepStage::kSumAndUpdate);
}

}  // namespace embertable
