#include <algorithm>
#include <chrono>
#include <limits>

#include "base/assert.h"
#include "embertable/errors.h"
#include "engine/host.h"
#include "kernels/stage_clock.h"
#include "rows/cursors.h"
#include "step/quantization.h"

namespace embertable::engine {
namespace {

/// Row floats that a lookup item reads and writes for each output row.
std::int64_t floats_per_output(const LookupPlan& plan, std::int64_t dim) {
  return (plan.row.size + plan.outputs - 1) / plan.outputs * dim + dim;
}

/// Floats of a lookup item: so many that changing from one to the next costs little, and few enough
/// that workers end together.
std::int64_t item_floats(std::int64_t all_floats, std::int64_t workers) {
  constexpr std::int64_t kItemsOfWorker = 8, kLeast = 1 << 15, kMost = 1 << 18;
  return std::clamp(all_floats / (workers * kItemsOfWorker), kLeast, kMost);
}

bool is_copy(const LookupPlan& plan) { return plan.split.empty() && !plan.has_gain(); }

}  // namespace

void Host::forward(Tables& tables, Step& step, std::span<const std::span<float>> values) {
  const auto begin = std::chrono::steady_clock::now();
  of(step).memory.reset();
  if (!alone()) {
    ask_owners(tables, step);
    fetch_rows(tables, step);
  }
  if (alone() && step.training) plan_updates(tables, step);
  list_lookups(tables, step, values);
  if (alone() && step.training) list_scatters(step);
  run_forward();
  statistics_.forward_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  count_lookups(step);
  if (count_unique_ids_) count_unique_rows(tables, step);
}

void Host::count_lookups(Step& step) {
  looked_up_ = &step;
  for (std::size_t table = 0; table < statistics_.tables.size(); ++table) {
    StepStatistics::Table& counts = statistics_.tables[table];
    counts = {};
    for_each_source(table, [&](std::int32_t r, std::int64_t feature) {
      const FeatureReader& reader = step.reader(r, feature);
      counts.dropped_ids += reader.dropped_ids();
      counts.truncated_entries += reader.truncated_entries();
      counts.empty_rows += reader.empty_rows();
      counts.entries += step.plan(r, feature).row.size;
    });
  }
}

/// Calls visit(row) for every entry that names a row of this host's shard, once for each distinct
/// row of those that other hosts ask for.
template <class Visit>
void Host::for_each_own_row(Step& step, std::size_t table, Visit visit) const {
  const auto visit_plan = [&]<class Index>(const LookupPlan& plan, Index received) {
    const Index* row = plan.row.as<Index>();
    for (std::int64_t j = 0; j < plan.row.size; ++j)
      if ((row[j] & received) == 0) visit(std::uint64_t{row[j]});
  };
  for_each_source(table, [&](std::int32_t r, std::int64_t feature) {
    const LookupPlan& plan = step.plan(r, feature);
    plan.row.wide ? visit_plan(plan, kReceivedBit<std::uint64_t>)
                  : visit_plan(plan, kReceivedBit<std::uint32_t>);
  });
  if (alone()) return;
  for (const std::span<const std::uint64_t> owed : of(step).route[table].owed)
    for (const std::uint64_t row : owed) visit(row);
}

/// Marks each row at its first entry; a second walk takes the marks away.
void Host::count_unique_rows(const Tables& tables, Step& step) {
  std::int64_t entries = 0;
  for (std::size_t t = 0; t < seen_.size(); ++t) {
    const Shard& shard = tables.tables()[t].shards[exchange_->host()];
    seen_[t].resize((shard.rows() + 63) / 64);
    entries += statistics_.tables[t].entries;
  }
  region(static_cast<std::int64_t>(seen_.size()), entries, [&](const WorkItem& item) {
    const auto t = static_cast<std::size_t>(item.index);
    std::uint64_t* const seen = seen_[t].data();
    std::int64_t unique = 0;
    for_each_own_row(step, t, [&](std::uint64_t row) {
      unique += (~seen[row / 64] >> (row % 64)) & 1;
      seen[row / 64] |= std::uint64_t{1} << (row % 64);
    });
    for_each_own_row(step, t, [&](std::uint64_t row) { seen[row / 64] = 0; });
    statistics_.tables[t].unique_rows = unique;
  });
}

/// Entries and output rows are numbered with 32 bits in an update. Throws ValueError.
void Host::check_update_size(const Tables& tables, Step& step, std::size_t table) const {
  std::int64_t entries = 0, pieces = 0;
  for_each_source(table, [&](std::int32_t r, std::int64_t feature) {
    entries += step.plan(r, feature).row.size;
    pieces += pieces_for(step.plan(r, feature).outputs);
  });
  if (!alone()) {
    for (const std::span<const std::uint64_t> owed : of(step).route[table].owed) {
      const auto rows = static_cast<std::int64_t>(owed.size());
      entries += rows * replicas_per_host_;
      pieces += pieces_for(rows) * replicas_per_host_;
    }
  }
  constexpr auto kMost = std::int64_t{std::numeric_limits<std::uint32_t>::max()};
  if (entries <= kMost && pieces * kPieceRows <= kMost) return;
  throw ValueError("table '" + tables.tables()[table].name +
                   "': a step may have at most 2^32 - 1 entries and output rows, got " +
                   std::to_string(entries) + " and " + std::to_string(pieces * kPieceRows));
}

void Host::plan_updates(Tables& tables, Step& step) {
  of(step).update.assign(assembly_.tables.size(), UpdatePlan{});
  for (std::size_t table = 0; table < assembly_.tables.size(); ++table) {
    check_update_size(tables, step, table);
    plan_update(tables.tables()[table], table, step);
  }
}

void Host::plan_update(const StoredTable& table, std::size_t index, Step& step) {
  Arena& memory = of(step).memory;
  UpdatePlan& update = of(step).update[index];
  const std::int32_t buckets = step.buckets[index];
  std::int64_t entries = 0;
  bool gain = false;
  for_each_source(index, [&](std::int32_t r, std::int64_t feature) {
    entries += step.plan(r, feature).row.size;
    gain |= step.plan(r, feature).has_gain();
  });
  update.wide = table.wide();
  update.bucket = memory.take<std::int64_t>(buckets + 1);
  update.bucket.front() = 0;
  update.bucket.back() = entries;
  if (buckets > 1) {
    const std::int64_t placed = counts_to_cursors(update.bucket, [&](auto&& visit) {
      for_each_source(index, [&](std::int32_t r, std::int64_t feature) {
        LookupPlan& plan = step.plan(r, feature);
        for (std::int64_t tile = 0; tile < plan.tiles(); ++tile)
          visit(plan.counts.data() + tile * plan.counts_stride);
      });
    });
    EMBERTABLE_ASSERT(placed == entries);
  }

  const std::vector<std::int64_t>& features = assembly_.tables[index].features;
  const bool one_source = replicas_per_host_ == 1 && features.size() == 1;
  if (buckets == 1 && one_source && is_copy(step.plan(0, features.front()))) {
    update.direct = &step.plan(0, features.front());
    return;
  }
  if (update.wide) {
    update.entry = memory.take<UpdateEntry<std::uint64_t>>(entries).data();
  } else {
    update.entry = memory.take<UpdateEntry<std::uint32_t>>(entries).data();
  }
  if (gain) update.gain = memory.take<float>(entries).data();
}

void Host::list_lookups(Tables& tables, Step& step, std::span<const std::span<float>> values) {
  constexpr std::int64_t kLeastRun = 16;
  lookups_.clear();
  std::int64_t all_floats = 0, most_items = 0;
  for (std::int32_t r = first_replica(); r < first_replica() + replicas_per_host_; ++r) {
    for (std::int64_t feature = 0; feature < features(); ++feature) {
      const std::int64_t table = assembly_.table_of[feature];
      const LookupPlan& plan = step.plan(r, feature);
      all_floats += (plan.row.size + plan.outputs) * tables.table(table).dim;
      most_items += plan.outputs / kLeastRun + 1 + plan.tiles();
    }
  }
  lookups_.reserve(most_items);  // whatever the next batch's ids are
  const std::int64_t floats_of_item = item_floats(all_floats, executor_->workers());
  for (std::int32_t r = first_replica(); r < first_replica() + replicas_per_host_; ++r) {
    for (std::int64_t feature = 0; feature < features(); ++feature) {
      const std::int64_t table = assembly_.table_of[feature];
      const LookupPlan& plan = step.plan(r, feature);
      if (plan.outputs == 0) continue;
      LookupItem item;
      item.plan = &plan;
      item.grid = grid_of(assembly_.tables[table].config.quantization_config);
      item.rows = tables.table(table).shards[exchange_->host()].block();
      if (!alone()) item.received = of(step).route[table].received.data();
      item.out = values[r * features() + feature].data();
      const std::int64_t floats = floats_per_output(plan, item.rows.dim);
      const std::int64_t run = std::clamp(floats_of_item / floats, kLeastRun, kTileRows);
      for (item.first = 0; item.first < plan.outputs; item.first = item.last) {
        item.last = std::min(plan.outputs, item.first + run);
        lookups_.push_back({item, {}, (item.last - item.first) * floats});
      }
    }
  }
}

void Host::list_scatters(Step& step) {
  for (std::size_t table = 0; table < assembly_.tables.size(); ++table) {
    UpdatePlan& update = of(step).update[table];
    if (update.direct) continue;
    std::int64_t piece = 0, first_entry = 0;
    for_each_source(table, [&](std::int32_t r, std::int64_t feature) {
      const LookupPlan& plan = step.plan(r, feature);
      for (std::int64_t tile = 0; tile < plan.tiles(); ++tile) {
        const std::int64_t last = std::min(plan.outputs, (tile + 1) * kTileRows);
        const std::int64_t entries = plan.first_entry(last) - plan.first_entry(tile * kTileRows);
        if (entries == 0) continue;
        ScatterItem item{&plan, &update, tile, static_cast<std::uint32_t>(piece), first_entry};
        lookups_.push_back({{}, item, entries * 4});
      }
      piece += pieces_for(plan.outputs);
      first_entry += plan.row.size;
    });
  }
}

void Host::run_item(const WorkItem& work) const {
  const ForwardItem& item = lookups_[work.index];
  if (!item.lookup.plan) return scatter(item.scatter);
  const ForwardItem* next = work.next < 0 ? nullptr : &lookups_[work.next];
  look_up(item.lookup, next && next->lookup.plan ? &next->lookup : nullptr, level_);
}

void Host::run_forward() {
  std::int64_t floats = 0;
  for (const ForwardItem& item : lookups_) floats += item.floats;
  statistics_.forward_workers =
      region(static_cast<std::int64_t>(lookups_.size()), floats, [&](const WorkItem& work) {
        StageLap lap;
        run_item(work);
        const bool looks_up = lookups_[work.index].lookup.plan != nullptr;
        lap.to(looks_up ? Stage::kLookUp : Stage::kScatter);
      });
}

}  // namespace embertable::engine
