#pragma once

#include <cstdint>

#include "base/rows.h"
#include "kernels/gather.h"
#include "kernels/level.h"
#include "rows/plan.h"

namespace embertable {

/// A run of output rows of one feature of one replica, which is looked up as one work item.
struct LookupItem {
  const LookupPlan* plan = nullptr;
  RowBlock rows;
  Grid grid;  ///< grid on which the rows' numbers are looked up
  /// Rows of other hosts, [n, dim] packed: row numbers with the top bit set.
  const float* received = nullptr;
  float* out = nullptr;              ///< activation of output row 0, [outputs, dim] packed
  std::int64_t first = 0, last = 0;  ///< output rows first <= i < last
};

/// Writes out[i] for first <= i < last: the weighted sum of its rows, left to right from the first
/// term, divided once by the denominator; zeros where there are no entries or the denominator is 0.
/// `next` (or null) is what this worker does next: its first rows are prefetched.
void look_up(const LookupItem& item, const LookupItem* next, SimdLevel level) noexcept;

/// One tile of one feature's entries, to be scattered into the buckets of its table.
struct ScatterItem {
  const LookupPlan* plan = nullptr;  ///< counts of the tile are cursors now, and are advanced
  const UpdatePlan* update = nullptr;
  std::int64_t tile = 0;
  /// First piece of the feature: out of output row i = first_piece * kPieceRows + i.
  std::uint32_t first_piece = 0;
  /// First entry of the feature, where the table has one bucket: there are no cursors.
  std::int64_t first_entry = 0;
};

/// Writes the entries of a tile into their buckets. Stable: entries of a bucket stay in canonical
/// order whatever the order of the items.
void scatter(const ScatterItem& item) noexcept;

}  // namespace embertable
