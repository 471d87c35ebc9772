#pragma once

#include <cstdint>

#include "base/rows.h"
#include "kernels/update.h"
#include "rows/plan.h"

namespace embertable {

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
  UpdatePlan plan;              ///< where the entries go; empty in a lookup without gradients
  GradientSource gradients;     ///< where the pieces of plan.piece are
  bool near_gradients = false;  ///< see gradients_stay_near

  /// If not null, bit r % 16 of touched[r / 16] is set for every row r that an entry names.
  std::uint16_t* touched = nullptr;
};

/// Marks a row of a table where rows are marked.
inline void touch(const TableUpdate& table, std::uint64_t row) noexcept {
  std::uint16_t& rows = table.touched[row / 16];
  rows = static_cast<std::uint16_t>(rows | (1u << (row % 16)));
}

}  // namespace embertable
