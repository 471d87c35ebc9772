#pragma once

#include <cstdint>
#include <vector>

#include "kernels/level.h"
#include "rows/plan.h"
#include "step/burst_choice.h"
#include "step/table_run.h"
#include "step/workers.h"

namespace embertable {

/// A run of output rows of one feature of one core, which is looked up as one work item.
struct LookupItem {
  const TableRun* table = nullptr;
  const FeatureRun* feature = nullptr;
  std::int64_t first = 0, last = 0;  ///< output rows first <= i < last

  std::int64_t entries() const {
    return feature->plan->first_entry(last) - feature->plan->first_entry(first);
  }
};

/// Writes out[i] for first <= i < last: the weighted sum of its rows, left to right from the first
/// term, divided once by the denominator; zeros where there are no entries or the denominator is 0.
/// `next` (or null) is what this worker does next: its first rows are prefetched. `bursts`: see
/// BurstChoice.
void look_up(const LookupItem& item, const LookupItem* next, SimdLevel level,
             bool bursts = false) noexcept;

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
void scatter(const ScatterItem& item, SimdLevel level) noexcept;

/// The parallel region of a forward: every activation is looked up, and the entries of tables that
/// have an update plan are scattered into its buckets. Its memory is reused.
class ForwardRun {
 public:
  /// Does all of that for a step. Returns how many workers took part.
  std::int32_t run(const HostStep& step, Workers& workers, SimdLevel level);

 private:
  struct Item {
    LookupItem lookup;  ///< without a table: the item is a scatter
    ScatterItem scatter;
  };

  std::vector<Item> items_;          ///< lookups first
  DealtItems dealt_;                 ///< the same items
  std::vector<BurstChoice> bursts_;  ///< by table
};

}  // namespace embertable
