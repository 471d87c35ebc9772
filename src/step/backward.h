#pragma once

#include <cstdint>

#include "base/rows.h"
#include "kernels/level.h"
#include "kernels/update.h"
#include "rows/plan.h"
#include "step/scratch_pool.h"

namespace embertable {

class HotBucket;

/// The rows of one table on one host, and how a step updates them. Whatever is pointed at is
/// borrowed until the update is done.
struct TableUpdate {
  RowBlock rows;

  /// If false, every entry is a step, those of a row in canonical order; not for small tables.
  bool accumulates = true;
  bool gives_sums = false;  ///< see Rule::gives_sums; the rows' memory may be read-only

  UpdateRows update_rows = nullptr;                     ///< any dim
  UpdateGroups<std::uint32_t> update_groups = nullptr;  ///< or null: see Rule::update_groups
  StepScalars step;                                     ///< set once the gradients have come
  UpdatePlan plan;           ///< where the entries go; empty in a lookup without gradients
  GradientSource gradients;  ///< where the pieces of plan.piece are

  /// If not null, bit r % 16 of touched[r / 16] is set for every row r that an entry names.
  std::uint16_t* touched = nullptr;
};

/// Marks a row of a table where rows are marked.
inline void touch(const TableUpdate& table, std::uint64_t row) noexcept {
  std::uint16_t& rows = table.touched[row / 16];
  rows = static_cast<std::uint16_t>(rows | (1u << (row % 16)));
}

/// Rows that were updated.
struct UpdatedRows {
  std::int64_t rows = 0;
  std::int64_t once = 0;  ///< rows that one entry names
};

/// Updates the rows of entries first <= i < first + count of the plan: those of one bucket, or some
/// of those that are set apart. Groups the entries of a bucket while prefetching their rows, sums
/// each row's gradients in canonical order and applies the rule. Entries that are set apart need no
/// grouping; they require that the table accumulates, and that rows are not marked. `hot`: the hot
/// rows of the bucket, already summed, or null.
UpdatedRows update_entries(const TableUpdate& table, std::int64_t first, std::int64_t count,
                           GroupScratch& scratch, SimdLevel level,
                           HotBucket* hot = nullptr) noexcept;

/// Steps rows first <= r < last that are not marked as touched, with a gradient of zeros. For rules
/// that step every row. Requires: all entries of the table have been applied; `scratch` has room
/// for half rows if the table's are.
void step_untouched_rows(const TableUpdate& table, std::int64_t first, std::int64_t last,
                         GroupScratch& scratch, SimdLevel level) noexcept;

/// Up to kMaxSideBySide small one-hot tables at once, each with a `direct` plan: gradients are
/// added in order to one accumulator per row and piece that starts at -0 (-0 + x is x, bit for
/// bit), then the rule is applied. Row numbers are not wide. unique: [count], distinct rows of each
/// table.
inline constexpr std::int32_t kMaxSideBySide = 8;
void update_small_tables(const TableUpdate* const* tables, std::int32_t count, std::int64_t* unique,
                         GroupScratch& scratch, SimdLevel level) noexcept;

}  // namespace embertable
