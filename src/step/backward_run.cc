#include "step/backward_run.h"

#include <algorithm>

#include "kernels/tile_update.h"
#include "step/bucket_policy.h"

namespace embertable {
namespace {

/// Whether to add up a table with one entry per output row as a whole, without grouping.
bool is_small(const TableUpdate& update) {
  const LookupPlan* direct = update.plan->direct;
  return direct != nullptr && update.accumulates &&
         is_small_table(update.rows.rows, update.rows.dim, direct->row.size, direct->outputs);
}

}  // namespace

BackwardRun::BackwardRun(SimdLevel level, std::int64_t tables) : level_(level), tables_(tables) {}

void BackwardRun::prepare(const HostStep& step, Workers& workers) {
  if (tables_.size() != step.tables.size()) tables_ = std::vector<Table>(step.tables.size());
  row_runs_.clear();
  for (std::size_t t = 0; t < tables_.size(); ++t) start_table(tables_[t], step.tables[t]);
  list_items(workers.count());
  find_hot_rows(workers.count());
  workers_ = hot_.sum(workers, level_);
  sort_items(workers.count());
  if (std::cmp_less(scratch_.size(), workers.count())) scratch_.resize(workers.count());
  reserve_scratch();
}

void BackwardRun::run(Workers& workers) {
  failure_.forget();
  std::int64_t floats = 0, other_floats = 0;
  for (const Item& item : items_) floats += item.left * tables_[item.table].update.rows.dim;
  for (const RowRun& run : row_runs_) other_floats += (run.last - run.first) * run.update->rows.dim;
  const std::int32_t updating = workers.run(std::ssize(items_), floats, [&](const WorkItem& work) {
    update_item(items_[work.index], scratch_[work.worker]);
  });
  workers_ = std::max(workers_, updating);
  workers.run(std::ssize(row_runs_), other_floats, [&](const WorkItem& work) {
    const RowRun& run = row_runs_[work.index];
    step_untouched_rows(*run.update, run.first, run.last);
  });
  failure_.rethrow();
  for (Table& table : tables_) {
    const std::int64_t entries = table.update.plan->bucket.back();
    if (entries > 0)
      table.unique_share = static_cast<double>(table.unique) / static_cast<double>(entries);
  }
}

void BackwardRun::start_table(Table& table, const TableRun& run) {
  const UpdatePlan& plan = run.plan;
  TableUpdate& update = table.update;
  update = {.rows = run.rows,
            .step = run.scalars,
            .update_rows = run.rule->update_rows(level_, *run.optimizer),
            .plan = &plan,
            .gradients = run.gradients,
            .accumulates = run.accumulates};
  update.step.failure = &failure_;
  if (run.accumulates && !plan.wide)
    update.update_groups = run.rule->update_groups(level_, *run.optimizer, run.rows.dim);
  if (run.rule->gives_sums()) {
    const std::int64_t entries = plan.bucket.back();
    table.sums.start(run.rows, run.accumulates ? std::min(entries, run.rows.rows) : entries);
    update.step.context = &table.sums;
  }
  if (run.steps_every_row) {
    table.touched.assign((run.rows.rows + 15) / 16, 0);
    update.touched = table.touched.data();
    const std::int64_t most = untouched_run_rows(run.rows.dim);
    for (std::int64_t first = 0; first < run.rows.rows; first += most)
      row_runs_.push_back({&update, first, std::min(first + most, run.rows.rows)});
  }
  table.unique.store(0, std::memory_order_relaxed);
}

/// Joins the small tables listed before it where they are alike and few.
void BackwardRun::list_small_table(std::int32_t table, std::int64_t side_by_side) {
  const TableUpdate& update = tables_[table].update;
  const std::int64_t bytes =
      update.rows.rows * update.rows.dim * static_cast<std::int64_t>(sizeof(float));
  const auto joins = [&](const Item& item) {
    const TableUpdate& before = tables_[table - 1].update;
    return item.small_tables > 0 && item.table + item.small_tables == table &&
           item.small_tables < side_by_side && item.bytes + bytes <= kSideBySideBytes &&
           before.rows.dim == update.rows.dim && before.update_rows == update.update_rows &&
           before.plan->direct->outputs == update.plan->direct->outputs;
  };
  if (items_.empty() || !joins(items_.back())) items_.push_back({.table = table});
  items_.back().small_tables += 1;
  items_.back().bytes += bytes;
  items_.back().entries += update.plan->direct->outputs;
}

void BackwardRun::list_items(std::int32_t workers) {
  items_.clear();
  const std::int64_t small_tables = std::count_if(
      tables_.begin(), tables_.end(), [](const Table& table) { return is_small(table.update); });
  const std::int64_t side_by_side = tables_side_by_side(small_tables, workers, kMaxSideBySide);
  for (std::int32_t t = 0; std::cmp_less(t, tables_.size()); ++t) {
    const UpdatePlan& plan = *tables_[t].update.plan;
    if (is_small(tables_[t].update)) {
      list_small_table(t, side_by_side);
      continue;
    }
    for (std::int64_t bucket = 0; bucket < plan.buckets(); ++bucket) {
      const std::int64_t entries = plan.bucket[bucket + 1] - plan.bucket[bucket];
      if (entries > 0) items_.push_back({.table = t, .bucket = bucket, .entries = entries});
    }
  }
}

void BackwardRun::find_hot_rows(std::int32_t workers) {
  hot_.clear();
  std::int64_t floats = 0;
  for (const Item& item : items_) floats += item.entries * tables_[item.table].update.rows.dim;
  for (Item& item : items_) {
    const TableUpdate& update = tables_[item.table].update;
    if (item.small_tables == 0 && update.accumulates &&
        outweighs_its_worker(item.entries, update.rows.dim, floats, workers))
      item.hot = hot_.find(update, item.bucket);
  }
}

/// Puts large items first, so that workers finish together. The others follow table by table:
/// buckets of a table read the same gradients, which then stay in a cache near the workers.
void BackwardRun::sort_items(std::int32_t workers) {
  std::int64_t entries = 0;
  for (Item& item : items_) {
    item.left = item.entries - (item.hot != nullptr ? item.hot->entries() : 0);
    entries += item.left;
  }
  const std::int64_t large = large_bucket_entries(entries, workers);
  std::sort(items_.begin(), items_.end(), [large](const Item& a, const Item& b) {
    const std::int64_t size_a = std::max(a.left, large), size_b = std::max(b.left, large);
    if (size_a != size_b) return size_a > size_b;
    return a.table != b.table ? a.table < b.table : a.bucket < b.bucket;
  });
}

/// Makes room for the largest item, whichever worker takes it; also for the entries of hot rows,
/// because the next batch may be alike and its sample may not show them.
void BackwardRun::reserve_scratch() {
  std::int64_t entries = 0, small_rows = 0, small_floats = 0;
  std::int32_t widest = 0;
  bool wide = false;
  for (const Item& item : items_) {
    std::int64_t rows = 0, floats = 0;
    for (std::int32_t i = 0; i < item.small_tables; ++i) {
      const RowBlock& block = tables_[item.table + i].update.rows;
      rows += block.rows;
      floats += block.rows * padded(block.dim);
    }
    small_rows = std::max(small_rows, rows);
    small_floats = std::max(small_floats, floats);
    if (item.small_tables > 0) continue;
    const TableUpdate& update = tables_[item.table].update;
    entries = std::max(entries, item.entries);
    widest = std::max(widest, update.rows.dim);
    wide |= update.plan->wide;
  }
  for (GroupScratch& scratch : scratch_) {
    if (widest > 0) scratch.reserve(entries, wide, widest);
    scratch.reserve_small(small_rows, small_floats);
  }
}

void BackwardRun::update_item(const Item& item, GroupScratch& scratch) {
  if (item.small_tables == 0) {
    Table& table = tables_[item.table];
    const std::int64_t unique = update_bucket(table.update, item.bucket, scratch, level_, item.hot);
    table.unique.fetch_add(unique, std::memory_order_relaxed);
    return;
  }
  const TableUpdate* updates[kMaxSideBySide];
  std::int64_t unique[kMaxSideBySide];
  for (std::int32_t i = 0; i < item.small_tables; ++i) updates[i] = &tables_[item.table + i].update;
  update_small_tables(updates, item.small_tables, unique, scratch, level_);
  for (std::int32_t i = 0; i < item.small_tables; ++i)
    tables_[item.table + i].unique.store(unique[i], std::memory_order_relaxed);
}

std::int64_t BackwardRun::scratch_bytes() const noexcept {
  std::int64_t bytes = hot_.bytes();
  for (const GroupScratch& scratch : scratch_) bytes += scratch.bytes();
  return bytes;
}

}  // namespace embertable
