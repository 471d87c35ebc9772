#include "step/backward.h"

#include <algorithm>

#include "base/assert.h"
#include "base/cache.h"
#include "base/entries.h"
#include "embertable/config.h"
#include "kernels/accumulate.h"
#include "kernels/row_tile.h"
#include "kernels/stage_clock.h"
#include "kernels/tile_update.h"
#include "step/hot_rows.h"

namespace embertable {
namespace {

template <class Index>
struct BucketEntries {
  const Index* row;
  const std::uint32_t* out;
  const float* gain;
  std::int64_t count;
};

/// Returns entries first <= i < first + count of a plan.
template <class Index>
BucketEntries<Index> take_entries(const UpdatePlan& plan, std::int64_t first, std::int64_t count,
                                  GroupScratch& scratch, SimdLevel level) {
  EMBERTABLE_ASSERT(count <= scratch.entries());
  std::uint32_t* const out = scratch.out();
  if (plan.direct != nullptr) {  // one bucket
    for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<std::uint32_t>(i);
    return {plan.direct->row.as<Index>(), out, nullptr, count};
  }
  take_apart<Index>({.entry = static_cast<const UpdateEntry<Index>*>(plan.entry) + first,
                     .count = count,
                     .row = scratch.row<Index>(),
                     .out = out},
                    level);
  return {scratch.row<Index>(), out, plan.gain == nullptr ? nullptr : plan.gain + first, count};
}

/// Returns the entries of all but the hot rows.
template <class Index>
BucketEntries<Index> take_others(const TableUpdate& table, const HotBucket& hot,
                                 GroupScratch& scratch, SimdLevel level) {
  Index* row = scratch.row<Index>();
  float* gain = table.plan.gain == nullptr ? nullptr : scratch.gain();
  const std::int64_t count = hot.take_others(row, scratch.out(), gain, level);
  EMBERTABLE_ASSERT(count <= scratch.entries());
  return {row, scratch.out(), gain, count};
}

template <class Index>
void touch_all(const TableUpdate& table, const GroupedEntries<Index>& grouped) {
  for (std::int64_t i = 0; i < grouped.singles; ++i) touch(table, grouped.single_row[i]);
  for (std::int64_t i = 0; i < grouped.multis; ++i) touch(table, grouped.multi_row[i]);
}

/// Returns where half rows are widened, or null if no row changes.
float* wide_rows(const TableUpdate& table, const GroupScratch& scratch) {
  return table.gives_sums ? nullptr : scratch.wide_rows();
}

/// Applies a rule without a form that is fused with the sum.
template <class Index>
void update_rows(const TableUpdate& table, const BucketEntries<Index>& entries,
                 const GroupedEntries<Index>& grouped, GroupScratch& scratch, SimdLevel level) {
  EMBERTABLE_ASSERT(RowTile::kRows * padded(table.rows.dim) <= scratch.num_sums());
  EMBERTABLE_ASSERT(!table.rows.is_half() || table.gives_sums || scratch.wide_rows() != nullptr);
  const TileUpdate<Index> tiles = {.entries = grouped,
                                   .gradients = table.gradients,
                                   .rows = table.rows,
                                   .update_rows = table.update_rows,
                                   .step = table.step,
                                   .sums = scratch.sums(),
                                   .wide = wide_rows(table, scratch)};
  if (table.accumulates) return update_by_tiles<Index>(tiles, level);
  if (table.rows.is_half()) return update_by_occurrences<Index>(tiles, level);
  update_by_entries<Index>({.row = entries.row,
                            .out = entries.out,
                            .gain = entries.gain,
                            .count = entries.count,
                            .gradients = table.gradients,
                            .rows = table.rows,
                            .update_rows = table.update_rows,
                            .step = table.step,
                            .sums = scratch.sums()},
                           level);
}

/// Applies the fused form of the rule, if it has one.
bool update_fused(const TableUpdate& table, const GroupedEntries<std::uint32_t>& grouped) {
  return table.update_groups != nullptr &&
         table.update_groups(grouped, table.gradients, table.rows, table.step);
}
bool update_fused(const TableUpdate&, const GroupedEntries<std::uint64_t>&) { return false; }

template <class Index>
UpdatedRows update_entries_of(const TableUpdate& table, std::int64_t first, std::int64_t count,
                              GroupScratch& scratch, SimdLevel level, HotBucket* hot) {
  StageLap lap;
  if (hot != nullptr) hot->update(wide_rows(table, scratch), level);
  lap.to(StepStage::kSumAndUpdate);
  const BucketEntries<Index> entries =
      hot != nullptr ? take_others<Index>(table, *hot, scratch, level)
                     : take_entries<Index>(table.plan, first, count, scratch, level);
  const std::int64_t hot_rows = hot != nullptr ? hot->rows() : 0;
  if (entries.count == 0) {
    lap.to(StepStage::kGroup);
    return {hot_rows, 0};
  }
  GroupedEntries<Index> grouped;
  if (first < table.plan.bucket.back()) {
    grouped = group<Index>({.row = entries.row,
                            .out = entries.out,
                            .gain = entries.gain,
                            .count = entries.count,
                            .rows = table.rows,
                            .memory = scratch.memory<Index>(),
                            .prefetched_bytes = quarter_of_level2_cache(),
                            .to_level2 = fetches_through_level2()},
                           level);
    if (table.touched != nullptr) touch_all(table, grouped);
  } else {
    // Marks of neighbouring rows, which other workers may update, share a word.
    EMBERTABLE_ASSERT(table.touched == nullptr);
    grouped.single_row = entries.row;
    grouped.single_out = entries.out;
    grouped.single_gain = entries.gain;
    grouped.singles = entries.count;
    grouped.to_level2 = fetches_through_level2();
  }
  lap.to(StepStage::kGroup);
  if (!table.accumulates || !update_fused(table, grouped))
    update_rows(table, entries, grouped, scratch, level);
  lap.to(StepStage::kSumAndUpdate);
  return {hot_rows + grouped.singles + grouped.multis, grouped.singles};
}

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

UpdatedRows update_entries(const TableUpdate& table, std::int64_t first, std::int64_t count,
                           GroupScratch& scratch, SimdLevel level, HotBucket* hot) noexcept {
  EMBERTABLE_ASSERT(scratch.wide() || !table.plan.wide);
  return table.plan.wide
             ? update_entries_of<std::uint64_t>(table, first, count, scratch, level, hot)
             : update_entries_of<std::uint32_t>(table, first, count, scratch, level, hot);
}

void step_untouched_rows(const TableUpdate& table, std::int64_t first, std::int64_t last,
                         GroupScratch& scratch, SimdLevel level) noexcept {
  static constexpr float kZeros[TableConfig::kMaxDim] = {};
  TileInProgress tile(table.rows, table.update_rows, table.step, wide_rows(table, scratch), level);
  for (std::int64_t r = first; r < last; ++r) {
    if ((table.touched[r / 16] >> (r % 16) & 1) == 0)
      tile.add(static_cast<std::uint64_t>(r), kZeros);
  }
  tile.finish();
}

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
  for (std::int32_t t = 0; t < count; ++t)
    unique[t] = accumulating[t].apply(wide_rows(*tables[t], scratch), level);
  lap.to(StepStage::kSumAndUpdate);
}

}  // namespace embertable
