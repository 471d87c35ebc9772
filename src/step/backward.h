#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/level.h"
#include "optimizer/callback_failure.h"
#include "optimizer/gradient_sums.h"
#include "step/bucket_policy.h"
#include "step/burst_choice.h"
#include "step/hot_rows.h"
#include "step/scratch_pool.h"
#include "step/table_run.h"
#include "step/table_update.h"
#include "step/update_items.h"
#include "step/workers.h"

namespace embertable {

/// Rows that were updated.
struct UpdatedRows {
  std::int64_t rows = 0;
  std::int64_t once = 0;  ///< rows that one entry names
};

/// Updates the rows of entries first <= i < first + count of the plan: those of one bucket, or some
/// of those that are set apart. Groups the entries of a bucket while prefetching their rows, sums
/// each row's gradients in canonical order and applies the rule. Entries that are set apart need no
/// grouping; they require that the table accumulates, and that rows are not marked. `hot`: the hot
/// rows of the bucket, already summed, or null. `bursts`: see BurstChoice.
UpdatedRows update_entries(const TableUpdate& table, std::int64_t first, std::int64_t count,
                           GroupScratch& scratch, SimdLevel level, HotBucket* hot = nullptr,
                           bool bursts = false) noexcept;

/// Steps rows first <= r < last that are not marked as touched, with a gradient of zeros. For rules
/// that step every row. Requires: all entries of the table have been applied; `scratch` has room
/// for half rows if the table's are.
void step_untouched_rows(const TableUpdate& table, std::int64_t first, std::int64_t last,
                         GroupScratch& scratch, SimdLevel level) noexcept;

/// Updates the rows that a step names, all tables at once: sums each row's gradients in canonical
/// order and applies its table's rule. Its memory is reused.
class BackwardRun {
 public:
  /// `shares`: by table, is told of each update; or empty. Borrowed.
  BackwardRun(SimdLevel level, std::int64_t tables, std::span<NamedShares> shares = {});

  /// Lists the work of a step, takes memory for it and sums the gradients of hot rows. No row
  /// changes. Requires: the step's update plans are filled, its gradients and scalars are set. The
  /// step is borrowed until `run` is done.
  void prepare(HostStep& step, Workers& workers);

  /// Updates rows, once after `prepare`. Returns how many workers took part in either. Throws the
  /// first exception of a user's function in a rule; some rows have then changed.
  std::int32_t run(Workers& workers);

  /// Distinct rows that the last update's entries of a table named.
  std::int64_t unique_rows(std::int64_t table) const noexcept {
    return tables_[table].unique.load(std::memory_order_relaxed);
  }

  /// Entries of the last update of a table that were set apart from buckets.
  std::int64_t set_apart(std::int64_t table) const noexcept { return tables_[table].set_apart; }

  /// Summed gradients of the last update of a table whose rule hands gradients on.
  const GradientSums& sums(std::int64_t table) const noexcept { return tables_[table].sums; }

  /// Bytes of all memory that workers use, and of sums that are handed on.
  std::int64_t scratch_bytes() const noexcept;

 private:
  struct Table {
    TableRun* run = nullptr;
    std::vector<std::uint16_t> touched;  ///< TableUpdate::touched, where every row steps
    GradientSums sums;
    std::atomic<std::int64_t> unique = 0, once = 0;
    std::int64_t set_apart = 0;
    BurstChoice bursts;
  };

  struct RowRun {
    const TableRun* table = nullptr;
    std::int64_t first = 0, last = 0;  ///< rows first <= r < last
  };

  double place_of(const UpdateItem& item) const;
  void update_small(const UpdateItem& item, GroupScratch& scratch);
  void step_other_rows(Workers& workers);

  const SimdLevel level_;
  std::vector<Table> tables_;
  const std::span<NamedShares> shares_;
  std::vector<UpdateItem> items_;
  DealtItems dealt_;              ///< the same items
  bool deals_ = false;            ///< the items are dealt to the workers
  std::int64_t floats_ = 0;       ///< floats that all items sum
  std::vector<RowRun> row_runs_;  ///< runs of tables where every row steps
  HotRows hot_;
  ScratchPool scratch_;
  CallbackFailure failure_;
  std::int32_t hot_workers_ = 0;  ///< workers that summed gradients of hot rows
};

}  // namespace embertable
