#include "step/backward.h"

#include <algorithm>

#include "base/assert.h"
#include "base/cache.h"
#include "base/entries.h"
#include "embertable/config.h"
#include "kernels/row_tile.h"
#include "kernels/stage_clock.h"
#include "kernels/tile_update.h"
#include "step/bucket_policy.h"
#include "step/small_tables.h"

namespace embertable {
namespace {

template <class Index>
struct BucketEntries {
  const Index* row;
  const std::uint32_t* out;
  const float* gain;
  std::int64_t count;
};

/// Returns entries first <= i < first + count of a plan.
template <class Index>
BucketEntries<Index> take_entries(const UpdatePlan& plan, std::int64_t first, std::int64_t count,
                                  GroupScratch& scratch, SimdLevel level) {
  EMBERTABLE_ASSERT(count <= scratch.entries());
  std::uint32_t* const out = scratch.out();
  if (plan.direct != nullptr) {  // one bucket
    for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<std::uint32_t>(i);
    return {plan.direct->row.as<Index>(), out, nullptr, count};
  }
  take_apart<Index>({.entry = static_cast<const UpdateEntry<Index>*>(plan.entry) + first,
                     .count = count,
                     .row = scratch.row<Index>(),
                     .out = out},
                    level);
  return {scratch.row<Index>(), out, plan.gain == nullptr ? nullptr : plan.gain + first, count};
}

/// Returns the entries of all but the hot rows.
template <class Index>
BucketEntries<Index> take_others(const TableUpdate& table, const HotBucket& hot,
                                 GroupScratch& scratch, SimdLevel level) {
  Index* row = scratch.row<Index>();
  float* gain = table.plan.gain == nullptr ? nullptr : scratch.gain();
  const std::int64_t count = hot.take_others(row, scratch.out(), gain, level);
  EMBERTABLE_ASSERT(count <= scratch.entries());
  return {row, scratch.out(), gain, count};
}

template <class Index>
void touch_all(const TableUpdate& table, const GroupedEntries<Index>& grouped) {
  for (std::int64_t i = 0; i < grouped.singles; ++i) touch(table, grouped.single_row[i]);
  for (std::int64_t i = 0; i < grouped.multis; ++i) touch(table, grouped.multi_row[i]);
}

/// Whether the rule may have a form that sums a row's entries and steps it at once.
template <class Index>
bool has_fused_form(const TableUpdate& table) {
  return sizeof(Index) == sizeof(std::uint32_t) && table.accumulates &&
         table.update_groups != nullptr;
}

/// Returns the bytes of rows and slots that are fetched while their entries are grouped. A fused
/// form fetches rows ahead of their sums itself. Where that goes into the second-level cache, it is
/// enough, and fetching all of them here would only wait for memory.
template <class Index>
std::int64_t fetched_while_grouping(const TableUpdate& table) {
  return has_fused_form<Index>(table) && fetches_through_level2() ? 0 : quarter_of_level2_cache();
}

/// Returns where half rows are widened, or null if no row changes.
float* wide_rows(const TableUpdate& table, const GroupScratch& scratch) {
  return table.gives_sums ? nullptr : scratch.wide_rows();
}

/// Applies a rule without a form that is fused with the sum.
template <class Index>
void update_rows(const TableUpdate& table, const BucketEntries<Index>& entries,
                 const GroupedEntries<Index>& grouped, GroupScratch& scratch, SimdLevel level) {
  EMBERTABLE_ASSERT(RowTile::kRows * padded(table.rows.dim) <= scratch.num_sums());
  EMBERTABLE_ASSERT(!table.rows.is_half() || table.gives_sums || scratch.wide_rows() != nullptr);
  const TileUpdate<Index> tiles = {.entries = grouped,
                                   .gradients = table.gradients,
                                   .rows = table.rows,
                                   .update_rows = table.update_rows,
                                   .step = table.step,
                                   .sums = scratch.sums(),
                                   .wide = wide_rows(table, scratch)};
  if (table.accumulates) return update_by_tiles<Index>(tiles, level);
  if (table.rows.is_half()) return update_by_occurrences<Index>(tiles, level);
  update_by_entries<Index>({.row = entries.row,
                            .out = entries.out,
                            .gain = entries.gain,
                            .count = entries.count,
                            .gradients = table.gradients,
                            .rows = table.rows,
                            .update_rows = table.update_rows,
                            .step = table.step,
                            .sums = scratch.sums()},
                           level);
}

/// Applies the fused form of the rule, if it has one for this layout of rows.
template <class Index>
bool update_fused(const TableUpdate& table, const GroupedEntries<Index>& grouped) {
  if constexpr (sizeof(Index) == sizeof(std::uint32_t))
    return has_fused_form<Index>(table) &&
           table.update_groups(grouped, table.gradients, table.rows, table.step);
  return false;
}

template <class Index>
UpdatedRows update_entries_of(const TableUpdate& table, std::int64_t first, std::int64_t count,
                              GroupScratch& scratch, SimdLevel level, HotBucket* hot, bool bursts) {
  StageLap lap;
  if (hot != nullptr) hot->update(wide_rows(table, scratch), level);
  lap.to(StepStage::kSumAndUpdate);
  const BucketEntries<Index> entries =
      hot != nullptr ? take_others<Index>(table, *hot, scratch, level)
                     : take_entries<Index>(table.plan, first, count, scratch, level);
  const std::int64_t hot_rows = hot != nullptr ? hot->rows() : 0;
  GroupedEntries<Index> grouped;
  if (first < table.plan.bucket.back()) {
    const std::int64_t fetched = fetched_while_grouping<Index>(table);
    grouped = group<Index>({.row = entries.row,
                            .out = entries.out,
                            .gain = entries.gain,
                            .count = entries.count,
                            .rows = table.rows,
                            .memory = scratch.memory<Index>(),
                            .prefetched_bytes = fetched,
                            .to_level2 = fetches_through_level2()},
                           level);
    // What grouping fetched is in the second-level cache already.
    grouped.to_level2 = fetched == 0;
    grouped.near_gradients = table.near_gradients;
    if (table.touched != nullptr) touch_all(table, grouped);
  } else {
    // Marks of neighbouring rows, which other workers may update, share a word.
    EMBERTABLE_ASSERT(table.touched == nullptr);
    grouped.single_row = entries.row;
    grouped.single_out = entries.out;
    grouped.single_gain = entries.gain;
    grouped.singles = entries.count;
    grouped.to_level2 = fetches_through_level2();
  }
  grouped.bursts = bursts;
  lap.to(StepStage::kGroup);
  if (!update_fused(table, grouped)) update_rows(table, entries, grouped, scratch, level);
  lap.to(StepStage::kSumAndUpdate);
  return {hot_rows + grouped.singles + grouped.multis, grouped.singles};
}

/// Has all workers sum the gradients of rows that would keep one of them busy for too long. Returns
/// how many workers took part.
std::int32_t sum_hot_rows(std::span<const TableRun> tables, std::span<UpdateItem> items,
                          HotRows& hot, Workers& workers, SimdLevel level) {
  hot.clear();
  std::int64_t floats = 0;
  for (const UpdateItem& item : items) floats += item.entries * tables[item.table].rows.dim;
  for (UpdateItem& item : items) {
    const TableRun& run = tables[item.table];
    const bool is_bucket = item.small_tables == 0 && item.first < run.plan.bucket.back();
    if (is_bucket && run.accumulates &&
        outweighs_its_worker(item.entries, std::ssize(run.plan.piece), run.rows.dim, floats,
                             workers.count()))
      item.hot = hot.find(run, item.first, item.entries);
  }
  const std::int32_t took_part = hot.sum(workers, level);
  for (UpdateItem& item : items)
    if (item.hot != nullptr) item.left -= item.hot->entries();
  return took_part;
}

/// Makes room for the items. Entries of hot rows count, though they are never grouped, because the
/// next batch may be alike and its sample may not show them.
void reserve_scratch(std::span<const TableRun> tables, std::span<const UpdateItem> items,
                     std::int32_t workers, ScratchPool& scratch) {
  scratch.reserve(std::ssize(items), workers, [&](std::int64_t i) {
    const UpdateItem& item = items[i];
    const TableRun& run = tables[item.table];
    return item.small_tables > 0 ? ScratchPool::Need()
                                 : ScratchPool::Need{item.entries, run.plan.wide, run.rows.dim};
  });
  std::int32_t half_dim = 0;  // half rows are widened wherever a worker may step some
  for (const TableRun& table : tables)
    if (table.rows.is_half()) half_dim = std::max(half_dim, table.rows.dim);
  if (half_dim > 0) scratch.reserve_wide_rows(half_dim);
  std::int64_t small_rows = 0, small_floats = 0;
  for (const UpdateItem& item : items) {
    if (item.small_tables == 0) continue;
    small_rows = std::max(small_rows, item.rows);
    small_floats = std::max(small_floats, item.rows * padded(tables[item.table].rows.dim));
  }
  if (small_rows > 0) scratch.reserve_small(small_rows, small_floats);
}

}  // namespace

UpdatedRows update_entries(const TableUpdate& table, std::int64_t first, std::int64_t count,
                           GroupScratch& scratch, SimdLevel level, HotBucket* hot,
                           bool bursts) noexcept {
  EMBERTABLE_ASSERT(scratch.wide() || !table.plan.wide);
  return table.plan.wide
             ? update_entries_of<std::uint64_t>(table, first, count, scratch, level, hot, bursts)
             : update_entries_of<std::uint32_t>(table, first, count, scratch, level, hot, bursts);
}

void step_untouched_rows(const TableUpdate& table, std::int64_t first, std::int64_t last,
                         GroupScratch& scratch, SimdLevel level) noexcept {
  static constexpr float kZeros[TableConfig::kMaxDim] = {};
  TileInProgress tile(table.rows, table.update_rows, table.step, wide_rows(table, scratch), level);
  for (std::int64_t r = first; r < last; ++r) {
    if ((table.touched[r / 16] >> (r % 16) & 1) == 0)
      tile.add(static_cast<std::uint64_t>(r), kZeros);
  }
  tile.finish();
}

BackwardRun::BackwardRun(SimdLevel level, std::int64_t tables, std::span<NamedShares> shares)
    : level_(level), tables_(tables), shares_(shares) {}

void BackwardRun::prepare(HostStep& step, Workers& workers) {
  if (tables_.size() != step.tables.size()) tables_ = std::vector<Table>(step.tables.size());
  row_runs_.clear();
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    Table& table = tables_[t];
    TableRun& run = *(table.run = &step.tables[t]);
    run.step.failure = &failure_;
    run.near_gradients = gradients_stay_near(run.plan.bucket.back(), run.gradient_rows,
                                             run.rows.dim, workers.count());
    table.set_apart = run.plan.once;
    table.bursts.start(updates_may_burst() && has_fused_form<std::uint32_t>(run) && !run.plan.wide);
    if (run.gives_sums) {
      const std::int64_t entries = run.plan.entries();
      table.sums.start(run.rows, run.accumulates ? std::min(entries, run.rows.rows) : entries);
      run.step.context = &table.sums;
    }
    if (run.steps_every_row) {
      table.touched.assign((run.rows.rows + 15) / 16, 0);
      run.touched = table.touched.data();
      const std::int64_t most = untouched_run_rows(run.rows.dim);
      for (std::int64_t first = 0; first < run.rows.rows; first += most)
        row_runs_.push_back({&run, first, std::min(first + most, run.rows.rows)});
    }
    table.unique.store(0, std::memory_order_relaxed);
    table.once.store(0, std::memory_order_relaxed);
  }
  list_items(step.tables, workers.count(), items_);
  hot_workers_ = workers.count() > 1 ? sum_hot_rows(step.tables, items_, hot_, workers, level_) : 0;
  floats_ = 0;
  for (const UpdateItem& item : items_) floats_ += item.left * step.tables[item.table].rows.dim;
  sort_items(workers.count(), table_order(floats_, workers.count()), items_);
  reserve_scratch(step.tables, items_, workers.count(), scratch_);
  deals_ = step.keeps_tables && workers.run_together(floats_);
  if (workers.count() > 1)
    dealt_.start(workers.count(), static_cast<std::int64_t>(items_.capacity()));
}

/// Returns where an item lies in the step.
double BackwardRun::place_of(const UpdateItem& item) const {
  const TableRun& run = *tables_[item.table].run;
  if (item.small_tables > 0)
    return (run.part.begin + tables_[item.table + item.small_tables - 1].run->part.end) / 2;
  return run.part.at(item.first, item.first + item.entries, run.plan.entries());
}

std::int32_t BackwardRun::run(Workers& workers) {
  failure_.forget();
  if (deals_)
    for (const UpdateItem& item : items_) dealt_.add(place_of(item));
  const auto run_item = [&](const WorkItem& work) {
    const UpdateItem& item = items_[work.index];
    if (item.small_tables > 0) return update_small(item, scratch_.own(work));
    Table& table = tables_[item.table];
    UpdatedRows updated;
    table.bursts.time(work.index, item.entries, [&](bool bursts) {
      updated = update_entries(*table.run, item.first, item.entries, scratch_.of(work), level_,
                               item.hot, bursts);
    });
    table.unique.fetch_add(updated.rows, std::memory_order_relaxed);
    table.once.fetch_add(updated.once, std::memory_order_relaxed);
  };
  const std::int32_t updating = deals_ ? workers.run(dealt_, floats_, run_item)
                                       : workers.run(std::ssize(items_), floats_, run_item);
  if (!row_runs_.empty()) step_other_rows(workers);
  failure_.rethrow();
  for (std::size_t t = 0; t < shares_.size(); ++t) {
    const auto entries = static_cast<double>(tables_[t].run->plan.entries());
    if (entries == 0) continue;
    shares_[t].unique.store(static_cast<double>(tables_[t].unique) / entries,
                            std::memory_order_relaxed);
    shares_[t].once.store(static_cast<double>(tables_[t].once) / entries,
                          std::memory_order_relaxed);
  }
  return std::max(hot_workers_, updating);
}

std::int64_t BackwardRun::scratch_bytes() const noexcept {
  std::int64_t bytes = hot_.bytes() + scratch_.bytes();
  for (const Table& table : tables_)
    bytes += table.sums.bytes() +
             std::ssize(table.touched) * static_cast<std::int64_t>(sizeof(table.touched[0]));
  return bytes;
}

/// Steps the rows that no entry named, where a rule steps every row.
void BackwardRun::step_other_rows(Workers& workers) {
  std::int64_t floats = 0;
  for (const RowRun& run : row_runs_) floats += (run.last - run.first) * run.table->rows.dim;
  workers.run(std::ssize(row_runs_), floats, [&](const WorkItem& work) {
    const RowRun& run = row_runs_[work.index];
    step_untouched_rows(*run.table, run.first, run.last, scratch_.own(work), level_);
  });
}

void BackwardRun::update_small(const UpdateItem& item, GroupScratch& scratch) {
  const TableUpdate* updates[kMaxSideBySide];
  std::int64_t unique[kMaxSideBySide];
  for (std::int32_t i = 0; i < item.small_tables; ++i) updates[i] = tables_[item.table + i].run;
  update_small_tables(updates, item.small_tables, unique, scratch, level_);
  for (std::int32_t i = 0; i < item.small_tables; ++i)
    tables_[item.table + i].unique.store(unique[i], std::memory_order_relaxed);
}

}  // namespace embertable
