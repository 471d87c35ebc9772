#include <algorithm>
#include <chrono>

#include "engine/host.h"
#include "kernels/tile_update.h"

namespace embertable::engine {
namespace {

constexpr std::int64_t kSmallTableBytes = 256 << 10;  ///< accumulators of one run of small tables

/// Larger pieces of work first; then any fixed order.
bool larger(const UpdateItem& a, const UpdateItem& b) {
  if (a.entries != b.entries) return a.entries > b.entries;
  return a.table != b.table ? a.table < b.table : a.bucket < b.bucket;
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
  run_updates();
  for (std::size_t table = 0; table < unique_.size(); ++table) {
    const std::int64_t unique = unique_[table].load(std::memory_order_relaxed);
    const std::int64_t entries = of(step).update[table].bucket.back();
    statistics_.tables[table].unique_rows = unique;
    statistics_.tables[table].buckets = of(step).update[table].buckets();
    if (entries > 0)
      unique_share_[table] = static_cast<double>(unique) / static_cast<double>(entries);
  }
  statistics_.update_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void Host::point_at_gradients(Tables& tables, Step& step) {
  static constexpr float kZeros[TableConfig::kMaxDim] = {};
  for (std::size_t table = 0; table < assembly_.tables.size(); ++table) {
    std::vector<GradientPiece>& pieces = pieces_[table];
    pieces.clear();
    const std::int64_t dim = tables.tables()[table].dim;
    for (std::int32_t r = 0; r < replicas_per_host_; ++r) {
      for (const std::int64_t feature : assembly_.tables[table].features) {
        const float* gradient = step.gradient[static_cast<std::size_t>(r * features() + feature)];
        for (std::int64_t first = 0; first < step.plan(r, feature).outputs; first += kPieceRows) {
          pieces.push_back(gradient ? GradientPiece{gradient + first * dim, dim, r}
                                    : GradientPiece{kZeros, 0, r});
        }
      }
    }
    of(step).update[table].piece = pieces;
  }
}

void Host::list_updates(Tables& tables, Step& step, std::span<const float> rates,
                        std::int64_t number) {
  items_.clear();
  std::int64_t largest = 0, small_rows = 0, small_floats = 0;
  std::int32_t widest = 0;
  bool wide = false;
  for (std::size_t t = 0; t < updates_.size(); ++t) {
    const ResolvedTable& resolved = assembly_.tables[t];
    const UpdatePlan& plan = of(step).update[t];
    TableUpdate& update = updates_[t];
    update.rows = tables.tables()[t].shards[static_cast<std::size_t>(exchange_->host())].block();
    const float rate = resolved.rate_tag >= 0
                           ? rates[static_cast<std::size_t>(resolved.rate_tag)]
                           : static_cast<float>(resolved.optimizer->learning_rate().constant());
    update.step = resolved.rule->begin_step(*resolved.optimizer, rate, number);
    update.update_rows = resolved.rule->update_rows(level_);
    update.update_groups =
        plan.wide ? nullptr : resolved.rule->update_groups(level_, update.rows.dim);
    update.plan = &plan;
    update.gradients = {plan.piece.data(), nullptr, 0, plan.piece.size() <= 1};
    const bool one_source = alone() && replicas_per_host_ == 1 && resolved.features.size() == 1;
    if (one_source && !plan.piece.empty()) {
      update.gradients.base = plan.piece.front().base;
      update.gradients.stride = plan.piece.front().stride;
    }
    unique_[t].store(0, std::memory_order_relaxed);

    const auto table = static_cast<std::int32_t>(t);
    const std::int64_t bytes = update.rows.rows * update.rows.dim * 4;
    const bool small = plan.direct && plan.piece.size() <= 1 && bytes <= kSmallTableBytes / 2 &&
                       plan.direct->outputs * 2 >= update.rows.rows;
    if (small) {
      const bool joins = !items_.empty() && items_.back().small_tables > 0 &&
                         items_.back().table + items_.back().small_tables == table &&
                         items_.back().small_tables < kMaxSideBySide &&
                         items_.back().bucket + bytes <= kSmallTableBytes &&
                         updates_[t - 1].rows.dim == update.rows.dim &&
                         updates_[t - 1].update_rows == update.update_rows &&
                         updates_[t - 1].plan->direct->outputs == plan.direct->outputs;
      if (!joins) items_.push_back({table, 0, 0, 0});
      items_.back().small_tables += 1;
      items_.back().bucket += bytes;
      items_.back().entries += plan.direct->outputs;
      continue;
    }
    for (std::int64_t bucket = 0; bucket < plan.buckets(); ++bucket) {
      const std::int64_t entries = plan.bucket[static_cast<std::size_t>(bucket) + 1] -
                                   plan.bucket[static_cast<std::size_t>(bucket)];
      if (entries > 0) items_.push_back({table, 0, bucket, entries});
      largest = std::max(largest, entries);
    }
    widest = std::max(widest, update.rows.dim);
    wide |= plan.wide;
  }
  for (const UpdateItem& item : items_) {
    std::int64_t rows = 0, floats = 0;
    for (std::int32_t i = 0; i < item.small_tables; ++i) {
      const RowBlock& block = updates_[static_cast<std::size_t>(item.table + i)].rows;
      rows += block.rows;
      floats += block.rows * padded(block.dim);
    }
    small_rows = std::max(small_rows, rows);
    small_floats = std::max(small_floats, floats);
  }
  std::sort(items_.begin(), items_.end(), larger);
  for (GroupScratch& scratch : scratch_) {
    scratch.reserve(largest, wide, widest);
    scratch.reserve_small(small_rows, small_floats);
  }
}

void Host::run_updates() {
  std::int64_t floats = 0;
  for (const UpdateItem& item : items_)
    floats += item.entries * updates_[static_cast<std::size_t>(item.table)].rows.dim;
  statistics_.update_workers =
      region(static_cast<std::int64_t>(items_.size()), floats, [&](const WorkItem& work) {
        const UpdateItem& item = items_[static_cast<std::size_t>(work.index)];
        GroupScratch& scratch = scratch_[static_cast<std::size_t>(work.worker)];
        const TableUpdate& update = updates_[static_cast<std::size_t>(item.table)];
        if (item.small_tables > 0)
          return update_small_tables(&update, item.small_tables, scratch, level_);
        const std::int64_t unique = update_bucket(update, item.bucket, scratch, level_);
        unique_[static_cast<std::size_t>(item.table)].fetch_add(unique, std::memory_order_relaxed);
      });
}

}  // namespace embertable::engine
