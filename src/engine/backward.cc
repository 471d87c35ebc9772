#include <algorithm>
#include <chrono>

#include "engine/host.h"
#include "kernels/stage_clock.h"
#include "kernels/tile_update.h"

namespace embertable::engine {
namespace {

constexpr std::int64_t kFewEntries = 4096;  ///< which one worker sums as fast as several

constexpr std::int64_t kSmallTableBytes = 256 << 10;  ///< accumulators of one run of small tables

std::int64_t row_bytes(const RowBlock& rows) {
  return rows.rows * rows.dim * static_cast<std::int64_t>(sizeof(float));
}

/// Whether to add up a one-hot table as a whole instead of grouping its entries.
bool is_small(const TableUpdate& update) {
  const LookupPlan* direct = update.plan->direct;
  return direct && update.accumulates && update.plan->piece.size() <= 1 &&
         row_bytes(update.rows) <= kSmallTableBytes / 2 && direct->outputs * 2 >= update.rows.rows;
}

/// Large pieces of work first, so that workers end together; the others table by table, since the
/// buckets of a table read the same gradients, which then stay in a cache near the workers.
void sort_items(std::vector<UpdateItem>& items, std::int64_t workers) {
  std::int64_t entries = 0;
  for (const UpdateItem& item : items) entries += item.left;
  constexpr std::int64_t kItemsOfWorker = 16;
  const std::int64_t large = entries / (workers * kItemsOfWorker);
  std::sort(items.begin(), items.end(), [large](const UpdateItem& a, const UpdateItem& b) {
    const std::int64_t size_a = std::max(a.left, large), size_b = std::max(b.left, large);
    if (size_a != size_b) return size_a > size_b;
    return a.table != b.table ? a.table < b.table : a.bucket < b.bucket;
  });
}

}  // namespace

void Host::backward(Tables& tables, Step& step, std::span<const float> rates, std::int64_t number) {
  const auto begin = std::chrono::steady_clock::now();
  if (!alone()) {
    sum_for_owners(tables, step);
    collect_entries(tables, step);
  } else {
    point_at_gradients(tables, step);
  }
  list_updates(tables, step, rates, number);
  failure_.forget();
  sum_hot_rows();
  sort_items(items_, executor_->workers());
  reserve_scratch();
  run_updates();
  step_other_rows();
  failure_.rethrow();
  report_updates(step);
  statistics_.update_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void Host::report_updates(Step& step) {
  const HostStep& mine = of(step);
  for (std::size_t table = 0; table < unique_.size(); ++table) {
    const std::int64_t unique = unique_[table].load(std::memory_order_relaxed);
    const std::int64_t entries = mine.update[table].bucket.back();
    const ResolvedTable& resolved = assembly_.tables[table];
    StepStatistics::Table& counts = statistics_.tables[table];
    if (looked_up_ == &step) counts.unique_rows = unique;
    counts.rows_touched = resolved.steps_every_row()    ? updates_[table].rows.rows
                          : resolved.rule->gives_sums() ? 0
                                                        : unique;
    counts.buckets = mine.update[table].buckets();
    if (entries > 0)
      unique_share_[table] = static_cast<double>(unique) / static_cast<double>(entries);
  }
}

/// The pieces of one feature in one replica: gradient [outputs, dim], or null for zeros.
void Host::append_pieces(const float* gradient, std::int64_t outputs, std::int64_t dim,
                         std::int32_t replica, std::vector<GradientPiece>& pieces) {
  static constexpr float kZeros[TableConfig::kMaxDim] = {};
  for (std::int64_t first = 0; first < outputs; first += kPieceRows) {
    pieces.push_back(gradient ? GradientPiece{gradient + first * dim, dim, replica}
                              : GradientPiece{kZeros, 0, replica});
  }
}

void Host::append_pieces(Step& step, std::int32_t replica, std::int64_t feature, std::int64_t dim,
                         std::vector<GradientPiece>& pieces) const {
  append_pieces(step.gradient[replica * features() + feature], step.plan(replica, feature).outputs,
                dim, replica, pieces);
}

void Host::point_at_gradients(Tables& tables, Step& step) {
  for (std::size_t table = 0; table < assembly_.tables.size(); ++table) {
    std::vector<GradientPiece>& pieces = pieces_[table];
    pieces.clear();
    for_each_source(table, [&](std::int32_t r, std::int64_t feature) {
      append_pieces(step, r, feature, tables.tables()[table].dim, pieces);
    });
    of(step).update[table].piece = pieces;
  }
}

void Host::list_updates(Tables& tables, Step& step, std::span<const float> rates,
                        std::int64_t number) {
  items_.clear();
  for (std::size_t t = 0; t < updates_.size(); ++t) {
    const Shard& shard = tables.tables()[t].shards[exchange_->host()];
    set_up_update(t, shard.block(), of(step).update[t], rates, number);
  }
  constexpr std::int64_t kRunsOfWorker = 2;
  const std::int64_t small = std::count_if(updates_.begin(), updates_.end(), is_small);
  const std::int64_t side_by_side =
      std::clamp<std::int64_t>(small / (kRunsOfWorker * executor_->workers()), 1, kMaxSideBySide);
  for (std::size_t t = 0; t < updates_.size(); ++t)
    is_small(updates_[t]) ? list_small_table(t, side_by_side) : list_buckets(t);
  find_hot_buckets();
}

void Host::set_up_update(std::size_t table, const RowBlock& rows, const UpdatePlan& plan,
                         std::span<const float> rates, std::int64_t number) {
  const ResolvedTable& resolved = assembly_.tables[table];
  TableUpdate& update = updates_[table];
  update.rows = rows;
  const Rule& rule = *resolved.rule;
  const Optimizer& optimizer = *resolved.optimizer;
  update.step = resolved.begin_step(rates, number);
  update.step.failure = &failure_;
  if (rule.gives_sums()) {
    sums_[table].start(rows, plan.bucket.back());
    update.step.context = &sums_[table];
  }
  update.update_rows = rule.update_rows(level_, optimizer);
  update.accumulates = resolved.accumulates();
  update.update_groups =
      plan.wide || !update.accumulates ? nullptr : rule.update_groups(level_, optimizer, rows.dim);
  update.touched = nullptr;
  if (resolved.steps_every_row()) {
    touched_[table].assign((rows.rows + 15) / 16, 0);
    update.touched = touched_[table].data();
  }
  update.plan = &plan;
  update.gradients = {.piece = plan.piece.data()};
  const bool one_source = alone() && replicas_per_host_ == 1 && resolved.features.size() == 1;
  if (one_source && !plan.piece.empty()) {
    update.gradients.base = plan.piece.front().base;
    update.gradients.stride = plan.piece.front().stride;
  }
  unique_[table].store(0, std::memory_order_relaxed);
}

/// Joins the small tables before it where they are alike and few.
void Host::list_small_table(std::size_t table, std::int64_t side_by_side) {
  const TableUpdate& update = updates_[table];
  const std::int64_t bytes = row_bytes(update.rows);
  const bool joins =
      !items_.empty() && items_.back().small_tables > 0 &&
      static_cast<std::size_t>(items_.back().table + items_.back().small_tables) == table &&
      items_.back().small_tables < side_by_side &&
      items_.back().bucket + bytes <= kSmallTableBytes &&
      updates_[table - 1].rows.dim == update.rows.dim &&
      updates_[table - 1].update_rows == update.update_rows &&
      updates_[table - 1].plan->direct->outputs == update.plan->direct->outputs;
  if (!joins) items_.push_back({static_cast<std::int32_t>(table), 0, 0, 0});
  items_.back().small_tables += 1;
  items_.back().bucket += bytes;
  items_.back().entries += update.plan->direct->outputs;
}

void Host::list_buckets(std::size_t table) {
  const UpdatePlan& plan = *updates_[table].plan;
  for (std::int64_t bucket = 0; bucket < plan.buckets(); ++bucket) {
    const std::int64_t entries = plan.bucket[bucket + 1] - plan.bucket[bucket];
    if (entries > 0) items_.push_back({static_cast<std::int32_t>(table), 0, bucket, entries});
  }
}

/// Of buckets that would keep one worker busy for more than half of its share, those of which few
/// rows have much.
void Host::find_hot_buckets() {
  num_hot_ = 0;
  const auto workers = std::int64_t{executor_->workers()};
  if (workers == 1) return;
  const auto floats_of = [&](const UpdateItem& item) {
    return item.entries * updates_[item.table].rows.dim;
  };
  std::int64_t floats = 0;
  for (const UpdateItem& item : items_) floats += floats_of(item);
  for (UpdateItem& item : items_) {
    const TableUpdate& update = updates_[item.table];
    if (item.small_tables > 0 || !update.accumulates || item.entries < kFewEntries) continue;
    if (floats_of(item) * 2 * workers < floats) continue;
    if (hot_.size() == static_cast<std::size_t>(num_hot_)) hot_.emplace_back();
    if (hot_[num_hot_].find(update, item.bucket)) item.hot = num_hot_++;
  }
}

/// What is left of their buckets is grouped as any bucket is.
void Host::sum_hot_rows() {
  hot_parts_.clear();
  std::int64_t floats = 0, most_parts = 0;
  for (const UpdateItem& item : items_) {
    if (item.hot < 0) continue;
    HotBucket& hot = hot_[item.hot];
    hot.cut(executor_->workers());
    most_parts += hot.most_parts();
    hot_parts_.reserve(most_parts);
    for (std::int64_t part = 0; part < hot.parts(); ++part) hot_parts_.push_back({item.hot, part});
    floats += item.entries * updates_[item.table].rows.dim;
  }
  statistics_.update_workers =
      region(static_cast<std::int64_t>(hot_parts_.size()), floats, [&](const WorkItem& work) {
        StageLap lap;
        const HotPart& part = hot_parts_[work.index];
        hot_[part.hot].sum_part(part.part, level_);
        lap.to(Stage::kSumAndUpdate);
      });
  for (UpdateItem& item : items_) {
    item.left = item.entries;
    if (item.hot >= 0) item.left -= hot_[item.hot].entries();
  }
}

/// Room for the largest of the listed items, whichever worker takes it; also for the entries of hot
/// rows, since the next batch may be like this one and its sample not show them.
void Host::reserve_scratch() {
  std::int64_t entries = 0, small_rows = 0, small_floats = 0;
  std::int32_t widest = 0;
  bool wide = false;
  for (const UpdateItem& item : items_) {
    std::int64_t rows = 0, floats = 0;
    for (std::int32_t i = 0; i < item.small_tables; ++i) {
      const RowBlock& block = updates_[item.table + i].rows;
      rows += block.rows;
      floats += block.rows * padded(block.dim);
    }
    small_rows = std::max(small_rows, rows);
    small_floats = std::max(small_floats, floats);
    if (item.small_tables > 0) continue;
    const TableUpdate& update = updates_[item.table];
    entries = std::max(entries, item.entries);
    widest = std::max(widest, update.rows.dim);
    wide |= update.plan->wide;
  }
  for (GroupScratch& scratch : scratch_) {
    if (widest > 0) scratch.reserve(entries, wide, widest);
    scratch.reserve_small(small_rows, small_floats);
  }
}

void Host::run_updates() {
  std::int64_t floats = 0;
  for (const UpdateItem& item : items_) floats += item.left * updates_[item.table].rows.dim;
  const std::int32_t workers =
      region(static_cast<std::int64_t>(items_.size()), floats, [&](const WorkItem& work) {
        const UpdateItem& item = items_[work.index];
        GroupScratch& scratch = scratch_[work.worker];
        if (item.small_tables > 0) return update_small(item, scratch);
        HotBucket* hot = item.hot < 0 ? nullptr : &hot_[item.hot];
        const TableUpdate& update = updates_[item.table];
        const std::int64_t unique = update_bucket(update, item.bucket, scratch, level_, hot);
        unique_[item.table].fetch_add(unique, std::memory_order_relaxed);
      });
  statistics_.update_workers = std::max(statistics_.update_workers, workers);
}

void Host::update_small(const UpdateItem& item, GroupScratch& scratch) {
  const TableUpdate& update = updates_[item.table];
  std::int64_t unique[kMaxSideBySide];
  update_small_tables(&update, item.small_tables, unique, scratch, level_);
  for (std::int32_t i = 0; i < item.small_tables; ++i)
    unique_[item.table + i].store(unique[i], std::memory_order_relaxed);
}

/// Of tables whose rule steps every row, those that no entry named.
void Host::step_other_rows() {
  constexpr std::int64_t kPieceFloats = 1 << 16;
  row_runs_.clear();
  std::int64_t floats = 0;
  for (std::size_t t = 0; t < updates_.size(); ++t) {
    if (updates_[t].touched == nullptr) continue;
    const RowBlock& rows = updates_[t].rows;
    const std::int64_t run = std::max<std::int64_t>(kPieceFloats / rows.dim, 1);
    for (std::int64_t first = 0; first < rows.rows; first += run)
      row_runs_.push_back({t, first, std::min(first + run, rows.rows)});
    floats += rows.rows * rows.dim;
  }
  region(static_cast<std::int64_t>(row_runs_.size()), floats, [&](const WorkItem& work) {
    const RowRun& run = row_runs_[work.index];
    step_untouched_rows(updates_[run.table], run.first, run.last);
  });
}

}  // namespace embertable::engine
