#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "step/bucket_policy.h"
#include "step/hot_rows.h"
#include "step/table_run.h"

namespace embertable {

/// What one worker updates at once: a bucket of a table, some of its entries that are set apart, or
/// small tables side by side.
struct UpdateItem {
  std::int32_t table = 0;
  std::int32_t small_tables = 0;  ///< 0: a bucket; else tables from `table` on
  std::int64_t first = 0;         ///< first entry in the plan
  std::int64_t entries = 0;
  std::int64_t rows = 0;     ///< rows of small tables, which are of one dim
  std::int64_t left = 0;     ///< entries but for those of hot rows
  HotBucket* hot = nullptr;  ///< or null: the bucket has no hot rows
};

/// Lists the update of all tables, one after the other. Small tables that are next to each other
/// and alike go side by side, if there are enough of them for all workers.
void list_items(std::span<const TableRun> tables, std::int32_t workers,
                std::vector<UpdateItem>& items);

/// Puts large items first, so that workers finish together, each worker's own if they are dealt.
/// The others follow table by table, in this order: buckets of a table read the same gradients,
/// which then stay in a cache near the workers.
void sort_items(std::int32_t workers, TableOrder order, std::span<UpdateItem> items);

}  // namespace embertable
