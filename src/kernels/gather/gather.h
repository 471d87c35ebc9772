#pragma once

#include <cstdint>

#include "base/rows.h"
#include "kernels/level.h"

namespace embertable {

/// Rows by number: a number with the top bit set means a row of the receive buffer, any other a row
/// of the table.
struct GatheredRows {
  const void* table = nullptr;     ///< row r starts r * stride elements behind
  std::int64_t stride = 0;         ///< elements: floats, halves or bytes
  const void* received = nullptr;  ///< [n, dim] packed, or null: no number has the top bit set
  std::int64_t dim = 0;            ///< numbers per row; nothing beyond is read or written

  /// Elements are floats, halves of bfloat16, or bytes. A row of bytes ends with two floats, scale
  /// and offset, which no border of memory aligns; there are no received ones.
  RowType type = RowType::kFloat32;
  bool to_level2 = false;  ///< fetched ahead into the second-level cache, not the first
};

/// Numbers to which looked-up values are rounded: evenly spaced, `step` apart, from lower to upper.
/// x becomes floor((c - lower) / step + 0.5) * step + lower, where c is x clamped to [lower, upper]
/// and each operation is rounded to binary32; NaN stays NaN.
struct Grid {
  float lower = 0;
  float upper = 0;
  float step = 0;  ///< (upper - lower) / (numbers - 1) > 0, or 0: there is no grid
};

/// Rows that will be gathered soon.
struct SoonGathered {
  GatheredRows rows;
  const void* row = nullptr;  ///< [count], uint64_t if wide, else uint32_t
  bool wide = false;
  std::int64_t count = 0;
};

/// out[i] = the sum of weight[j] * row[j] over split[i] <= j < split[i + 1] from the first term on,
/// left to right, divided by denominator[i]; the rows' values are first rounded to the grid. Zeros
/// if there is no j or the denominator is 0.
template <class Index>  ///< uint32_t or uint64_t
struct Gather {
  GatheredRows rows;
  Grid grid;
  const Index* row = nullptr;           ///< [nnz]
  const std::int64_t* split = nullptr;  ///< [outputs + 1], or null: j = i
  const float* weight = nullptr;        ///< [nnz], or null: no multiplication
  const float* denominator = nullptr;   ///< [outputs], or null: no division
  float* out = nullptr;                 ///< [outputs, dim] packed
  std::int64_t first = 0, last = 0;     ///< outputs first <= i < last are written

  SoonGathered next;

  /// If set, output rows are fetched into the second-level cache before they are written, except
  /// copies of one line or less.
  bool outputs_ahead = false;

  /// If set, the rows of a few output rows may be fetched at once, not one before each that is
  /// added. They are if they are this host's, of bfloat16, have a form for their dim (16 to 256
  /// columns) and are not too many.
  bool bursts = false;

  /// If set, copies of whole cache lines of float32 by uint64_t numbers bypass the caches: for
  /// outputs so large that none of them would still be cached when it is read.
  bool streams = false;
};
template <class Index>
void gather(const Gather<Index>& args, SimdLevel level) noexcept;

}  // namespace embertable
