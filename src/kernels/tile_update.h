#pragma once

#include <cstdint>

#include "base/rows.h"
#include "kernels/level.h"
#include "kernels/update.h"

namespace embertable {

/// Returns the distance between rows of `dim` floats in scratch memory: whole vectors.
inline std::int64_t padded(std::int64_t dim) { return (dim + 15) / 16 * 16; }

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
};
template <class Index>
void update_by_tiles(const TileUpdate<Index>& args, SimdLevel level) noexcept;

/// Applies a rule to every entry by itself, in their order, up to 16 at a time; a tile ends before
/// one of its rows comes again.
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
