#pragma once

#include <cstdint>

#include "base/rows.h"
#include "kernels/level.h"
#include "kernels/update.h"

namespace embertable {

/// Columns between the starts of rows of `dim` floats in scratch memory: whole vectors.
inline std::int64_t padded(std::int64_t dim) { return (dim + 15) / 16 * 16; }

/// Sums each row's gradients in the promised order and applies a rule to 16 rows at a time. A
/// single row without gain is taken by the address of its gradient.
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

}  // namespace embertable
