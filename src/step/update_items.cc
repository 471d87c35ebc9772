#include "step/update_items.h"

#include <algorithm>
#include <utility>

#include "step/small_tables.h"

namespace embertable {
namespace {

/// Whether to add up a table with one entry per output row as a whole, without grouping.
bool is_small(const TableRun& table) {
  const LookupPlan* direct = table.plan.direct;
  return direct != nullptr && table.accumulates &&
         is_small_table(table.rows.rows, table.rows.dim, direct->row.size, direct->outputs);
}

}  // namespace

void list_items(std::span<const TableRun> tables, std::int32_t workers,
                std::vector<UpdateItem>& items) {
  items.clear();
  const std::int64_t side_by_side =
      tables_side_by_side(std::ranges::count_if(tables, is_small), workers, kMaxSideBySide);
  std::int64_t all_entries = 0;
  for (const TableRun& table : tables) all_entries += table.plan.entries();
  const std::int64_t once_run = once_run_entries(all_entries, workers);
  const auto list = [&](std::int32_t table, std::int64_t first, std::int64_t entries) {
    items.push_back({.table = table, .first = first, .entries = entries, .left = entries});
  };
  // True if the table goes beside those of the last item.
  const auto joins = [&](std::int32_t table, const UpdateItem& item) {
    const TableRun &run = tables[table], &before = tables[table - 1];
    return item.small_tables > 0 && item.table + item.small_tables == table &&
           item.small_tables < side_by_side &&
           (item.rows + run.rows.rows) * run.rows.dim * std::int64_t{sizeof(float)} <=
               kSideBySideBytes &&
           before.rows.dim == run.rows.dim && before.update_rows == run.update_rows &&
           before.plan.direct->outputs == run.plan.direct->outputs;
  };
  for (std::int32_t t = 0; std::cmp_less(t, tables.size()); ++t) {
    const UpdatePlan& plan = tables[t].plan;
    if (is_small(tables[t])) {
      if (items.empty() || !joins(t, items.back())) list(t, 0, 0);
      UpdateItem& item = items.back();
      item.small_tables += 1;
      item.rows += tables[t].rows.rows;
      item.entries += plan.direct->outputs;
      item.left = item.entries;
      continue;
    }
    for (std::int64_t b = 0; b < plan.buckets(); ++b) {
      const std::int64_t first = plan.bucket[b], entries = plan.bucket[b + 1] - first;
      if (entries > 0) list(t, first, entries);
    }
    for (std::int64_t first = plan.bucket.back(); first < plan.entries(); first += once_run)
      list(t, first, std::min(once_run, plan.entries() - first));
  }
}

void sort_items(std::int32_t workers, TableOrder order, std::span<UpdateItem> items) {
  std::int64_t entries = 0;
  for (const UpdateItem& item : items) entries += item.left;
  const std::int64_t large = large_bucket_entries(entries, workers);
  const bool last_first = order == TableOrder::kLastToFirst;
  std::ranges::sort(items, [large, last_first](const UpdateItem& a, const UpdateItem& b) {
    const std::int64_t size_a = std::max(a.left, large), size_b = std::max(b.left, large);
    if (size_a != size_b) return size_a > size_b;
    if (a.table != b.table) return (a.table < b.table) != last_first;
    return a.first < b.first;
  });
}

}  // namespace embertable
