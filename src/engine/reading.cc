// How batches become plans: on every core the entries of its part.
#include <algorithm>

#include "base/assert.h"
#include "base/cache.h"
#include "base/float_environment.h"
#include "engine/batch_parts.h"
#include "engine/core.h"

namespace embertable::engine {
namespace {

constexpr std::int64_t kMostBuckets = 4096;
constexpr std::int64_t kUngroupedTableBytes =
    128 << 10;  ///< such one-hot tables are updated without grouping

std::int64_t ids_in(const FeatureIds& ids) {
  return std::visit([](const auto& of_kind) { return of_kind.values.size(); }, ids);
}

}  // namespace

/// Fills the plans of the cores that the call feeds. Throws what is wrong with a batch, in its
/// caller's terms.
void Core::read(Step& step, const Feed& feed) {
  try {
    for (std::int32_t c = feed.first; c < feed.last; ++c) {
      if (feed.cut && c % cores_per_replica_ == 0) cut_for_cores(step, feed, c);
      start_reading(step, feed, c);
    }
    finish_reading(step, feed);
  } catch (const ValueError&) {
    if (!feed.cut) throw;
    for (std::int32_t c = feed.first; c < feed.last; c += cores_per_replica_)
      read_once(feed, batch_of(feed, c), replica_of(c), shapes_.leaves());
    throw;
  }
}

/// Gives the cores of one replica their parts of its batch.
void Core::cut_for_cores(Step& step, const Feed& feed, std::int32_t first_core) {
  const std::span<ReplicaBatch> cores =
      std::span(step.replica).subspan(first_core, cores_per_replica_);
  for (ReplicaBatch& core : cores) {
    core.part_memory.reset();
    core.part_ids.resize(features_.size());
    core.part_weights.resize(features_.size());
  }
  const Batch& batch = batch_of(feed, first_core);
  for (std::int64_t i = 0; i < features_.size(); ++i) {
    if (cut_in_parts(batch.features[i], weights_of(batch, i), static_cast<std::size_t>(i), cores))
      continue;
    read_once(feed, batch, replica_of(first_core), shapes_.leaves());
    EMBERTABLE_ASSERT(!"a batch that cannot be cut is refused");
  }
}

/// Entries of a table in a step, judged by one batch of it.
std::int64_t Core::expected_entries(const Feed& feed, const Batch& batch, std::size_t table) const {
  std::int64_t entries = 0;
  for (const std::int64_t feature : assembly_.tables[table].features)
    entries += ids_in(batch.features[feature]) * cores_ / parts(feed);
  return entries;
}

/// Bytes of the rows and slots that so many entries of a table name.
double Core::expected_bytes(std::size_t table, std::int64_t entries) const {
  const StoredTable& stored = tables_->tables()[table];
  const RowBlock& rows = stored.shards.front().block();
  const double unique =
      std::min(static_cast<double>(entries) * unique_share_[table].load(std::memory_order_relaxed),
               static_cast<double>(stored.vocabulary_size));
  std::int64_t row_bytes = rows.stride * 4;
  for (std::int32_t slot = 0; slot < rows.slots; ++slot)
    row_bytes += rows.slot_stride[slot] == 1 ? 8 : 0;
  return unique * static_cast<double>(row_bytes);
}

/// Bytes of a bucket: what a worker's cache holds, or less where workers would have few of them.
double Core::bucket_bytes(const Feed& feed, const Batch& batch) const {
  constexpr double kLeast = 32 << 10, kBucketsOfWorker = 4;
  if (options_.tuning.bucket_bytes > 0) return static_cast<double>(options_.tuning.bucket_bytes);
  const auto cache = static_cast<double>(quarter_of_level2_cache());
  if (executor_->workers() == 1) return cache;
  double bytes = 0;
  for (std::size_t t = 0; t < assembly_.tables.size(); ++t)
    bytes += expected_bytes(t, expected_entries(feed, batch, t));
  return std::clamp(bytes / (kBucketsOfWorker * executor_->workers()), kLeast, cache);
}

/// So many buckets that none need hold half of a worker's share of a step's entries;
/// 16 neighbouring rows stay together, and few entries too.
std::int64_t Core::buckets_for_balance(std::size_t table, std::int64_t entries,
                                       std::int64_t all_entries) const {
  constexpr std::int64_t kBucketsOfWorker = 4, kLeastEntries = 1024;
  if (executor_->workers() == 1 || options_.tuning.bucket_bytes > 0 || all_entries == 0) return 1;
  const std::int64_t groups = tables_->tables()[table].vocabulary_size / 16 + 1;
  return std::min({entries * kBucketsOfWorker * executor_->workers() / all_entries, groups,
                   entries / kLeastEntries});
}

void Core::choose_buckets(Step& step, const Feed& feed, const Batch& batch) {
  const std::lock_guard lock(bucket_choice_);
  if (!step.buckets.empty()) return;
  const double target = bucket_bytes(feed, batch);
  std::int64_t all_entries = 0;
  for (std::size_t t = 0; t < assembly_.tables.size(); ++t)
    all_entries += expected_entries(feed, batch, t);
  for (std::size_t t = 0; t < assembly_.tables.size(); ++t) {
    const StoredTable& table = tables_->tables()[t];
    const std::int64_t entries = expected_entries(feed, batch, t);
    std::int64_t outputs = 0;
    for (const std::int64_t feature : assembly_.tables[t].features)
      outputs = std::max(outputs, shapes_[feature].num_elements());
    const bool one_source = cores_ == 1 && assembly_.tables[t].features.size() == 1;
    const bool small = one_source &&
                       table.vocabulary_size * table.dim * 4 <= kUngroupedTableBytes &&
                       entries * 2 >= table.vocabulary_size && outputs <= kPieceRows &&
                       options_.tuning.bucket_bytes == 0;
    // One bucket of one id each needs neither counts nor entries: worth half as much cache again.
    const bool one_each = one_source && entries == outputs;
    const bool by_cache = options_.tuning.bucket_bytes == 0 &&
                          target >= static_cast<double>(quarter_of_level2_cache());
    const double slack = one_each && by_cache ? 1.5 : 1;
    const double bytes = expected_bytes(t, entries);
    const std::int64_t for_cache =
        bytes < slack * target ? 1 : static_cast<std::int64_t>(bytes / target) + 1;
    const std::int64_t buckets = std::max(for_cache, buckets_for_balance(t, entries, all_entries));
    step.buckets.push_back(small ? 1 : static_cast<std::int32_t>(std::min(buckets, kMostBuckets)));
  }
}

void Core::start_reading(Step& step, const Feed& feed, std::int32_t core) {
  const Batch& batch = batch_of(feed, core);
  choose_buckets(step, feed, batch);
  ReplicaBatch& mine = step.replica[core];
  mine.memory.reset();
  mine.items.clear();
  for (std::int64_t i = 0; i < features_.size(); ++i) {
    const auto feature = static_cast<std::size_t>(i);
    const auto table = static_cast<std::size_t>(assembly_.table_of[feature]);
    const std::int32_t buckets = feed.training && hosts_ == 1 ? step.buckets[table] : 0;
    FeatureReader& reader = mine.readers[feature];
    reader.start(specs_[feature], feed.cut ? mine.part_ids[feature] : batch.features[i],
                 feed.cut ? mine.part_weights[feature] : weights_of(batch, i), replica_of(core),
                 buckets, mine.memory);
    for (std::int64_t tile = 0; tile < reader.tiles(); ++tile)
      mine.items.push_back({&reader, tile});
  }
}

/// Reads what was started.
void Core::finish_reading(Step& step, const Feed& feed) {
  std::int64_t items = 0, ids = 0;
  for (std::int32_t c = feed.first; c < feed.last; ++c) {
    items += static_cast<std::int64_t>(step.replica[c].items.size());
    for (std::int64_t i = 0; i < features_.size(); ++i) ids += step.plan(c, i).row.size;
  }
  const auto read = [&](const WorkItem& work) {
    const FloatEnvironment ours;
    std::int64_t index = work.index;
    std::int32_t c = feed.first;
    for (; index >= static_cast<std::int64_t>(step.replica[c].items.size()); ++c)
      index -= static_cast<std::int64_t>(step.replica[c].items.size());
    const ReplicaBatch::Item& item = step.replica[c].items[index];
    item.reader->read_tile(item.tile, level_);
  };
  if (ids < options_.tuning.inline_floats || items == 1) {
    for (std::int64_t i = 0; i < items; ++i) read({i, -1, 0});
  } else {
    executor_->run(items, read);
  }
  for (std::int32_t c = feed.first; c < feed.last; ++c)
    for (std::int64_t i = 0; i < features_.size(); ++i) step.reader(c, i).finish();
}

}  // namespace embertable::engine
