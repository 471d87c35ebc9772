#pragma once

#include <cstdint>

#include "base/rows.h"
#include "kernels/level.h"
#include "kernels/row_tile.h"
#include "kernels/update.h"

namespace embertable {

/// Sums each row's gradients in canonical order and applies a rule to 16 rows at a time. The
/// gradient of a row that is named once and has no gain is read in place.
template <class Index>
struct TileUpdate {
  GroupedEntries<Index> entries;
  GradientSource gradients;
  RowBlock rows;
  UpdateRows update_rows = nullptr;
  StepScalars step;
  float* sums = nullptr;  ///< [RowTile::kRows, padded(dim)]
  float* wide = nullptr;  ///< [RowTile::kRows, padded(dim)], for half rows
};
template <class Index>
void update_by_tiles(const TileUpdate<Index>& args, SimdLevel level) noexcept;

/// Applies a rule to every entry by itself, those of a row in their order, up to 16 rows at a time.
/// The occurrence of an entry is its place among those of its row. For half rows, whose rounding
/// depends on it.
template <class Index>
void update_by_occurrences(const TileUpdate<Index>& args, SimdLevel level) noexcept;

/// Applies a rule to every entry by itself, in their order, up to 16 at a time; a tile ends before
/// one of its rows comes again. Requires: rows are float32.
template <class Index>
struct EntryUpdate {
  const Index* row = nullptr;          ///< [count]
  const std::uint32_t* out = nullptr;  ///< parallel, as UpdateEntry::out
  const float* gain = nullptr;         ///< parallel, or null: all 1
  std::int64_t count = 0;
  GradientSource gradients;
  RowBlock rows;
  UpdateRows update_rows = nullptr;
  StepScalars step;
  float* sums = nullptr;  ///< [RowTile::kRows, padded(dim)]
};
template <class Index>
void update_by_entries(const EntryUpdate<Index>& args, SimdLevel level) noexcept;

}  // namespace embertable
