#include "engine/batch_reader.h"

#include <algorithm>

#include "base/assert.h"
#include "base/float_environment.h"
#include "embertable/errors.h"
#include "engine/batch_parts.h"

namespace embertable::engine {
namespace {

std::int64_t ids_in(const FeatureIds& ids) {
  return std::visit([](const auto& of_kind) { return of_kind.values.size(); }, ids);
}

/// Returns the output rows that a batch asks for, as far as its ids tell: at most those built.
std::int64_t outputs_of(const FeatureIds& ids, const FeatureSpec& spec) {
  const std::int64_t built = spec.output_shape.num_elements();
  if (!spec.variable_batch || spec.max_sequence_length > 0) return built;
  if (const auto* ragged = std::get_if<RaggedIds>(&ids))
    return std::clamp<std::int64_t>(ragged->row_splits.size() - 1, 0, built);
  if (const auto* dense = std::get_if<DenseIds>(&ids)) return std::min(dense->values.size(), built);
  return built;
}

/// None where the batch has no weights.
const FeatureWeights& weights_of(const Batch& batch, std::int64_t feature) {
  static const FeatureWeights kNone;
  return batch.weights ? (*batch.weights)[feature] : kNone;
}

}  // namespace

BatchReader::BatchReader(const Setup& setup)
    : setup_(setup), expected_(setup.assembly.tables.size()) {}

void BatchReader::use(const Tables& tables, std::span<const NamedShares> shares) noexcept {
  shares_ = shares;
  for (std::int64_t t = 0; t < std::ssize(expected_); ++t) {
    const StoredTable& table = tables.tables()[t];
    const ResolvedTable& resolved = setup_.assembly.tables[t];
    expected_[t] = {
        .rows = table.vocabulary_size,
        .dim = table.dim,
        .row_bytes = updated_bytes(table.shards.front().block()),
        .one_source = setup_.cores == 1 && setup_.all_hosts == 1 && resolved.features.size() == 1,
        .rows_alone = resolved.optimizer->options().use_gradient_accumulation &&
                      !resolved.rule->steps_every_row(*resolved.optimizer)};
  }
}

void BatchReader::read(Step& step, const Feed& feed, std::span<const FeatureSpec> specs) {
  std::vector<ReplicaBatch::Item>& items = step.replica[feed.cores.first].items;
  items.clear();
  std::int64_t ids = 0;
  try {
    for (std::int32_t c = feed.cores.first; c < feed.cores.last; ++c) {
      if (feed.cut && c % feed.cores_per_replica == 0) cut_for_cores(step, feed, c, specs);
      const Batch& batch = feed.batch_of(c);
      choose_buckets(step, feed, batch, specs);
      ReplicaBatch& core = step.replica[c];
      core.memory.reset();
      for (std::int64_t i = 0; i < std::ssize(specs); ++i) {
        ReplicaBatch::Feature& feature = core.features[i];
        const UpdateCut cut = step.cuts[setup_.assembly.table_of[i]];
        // Where rows named once are set apart, entries are counted when all of them are there.
        const bool counts = feed.training && setup_.all_hosts == 1 && !cut.once;
        feature.reader.start(specs[i], feed.cut ? feature.part_ids : batch.features[i],
                             feed.cut ? feature.part_weights : weights_of(batch, i),
                             feed.replica_of(c), counts ? cut.buckets : 0, core.memory);
        for (std::int64_t tile = 0; tile < feature.reader.tiles(); ++tile)
          items.push_back({&feature.reader, tile});
        ids += feature.reader.plan().row.size;
      }
    }
    const auto read_tile = [&](const WorkItem& work) {
      const FloatEnvironment ours;
      items[work.index].reader->read_tile(items[work.index].tile, setup_.level);
    };
    if (ids < setup_.options.tuning.inline_floats || items.size() == 1) {
      for (std::int64_t i = 0; i < std::ssize(items); ++i) read_tile({i, -1, 0});
    } else {
      setup_.executor->run(std::ssize(items), read_tile);
    }
    for (std::int32_t c = feed.cores.first; c < feed.cores.last; ++c)
      for (ReplicaBatch::Feature& feature : step.replica[c].features) feature.reader.finish();
  } catch (const ValueError&) {
    // The error names a place in a part: find that place in the whole batch.
    if (feed.cut) check(feed, specs);
    throw;
  }
}

void BatchReader::check(const Feed& feed, std::span<const FeatureSpec> specs) const {
  std::int32_t replica = feed.replica_of(feed.cores.first);
  for (const Batch& batch : feed.batches) check_batch(feed, batch, replica++, specs);
}

void BatchReader::check_batch(const Feed& feed, const Batch& batch, std::int32_t replica,
                              std::span<const FeatureSpec> specs) const {
  Arena memory;
  for (std::int64_t i = 0; i < std::ssize(specs); ++i) {
    FeatureSpec spec = specs[i];
    if (feed.cut)
      spec.output_shape = spec.output_shape.with_leading(spec.output_shape[0] * feed.parts());
    FeatureReader reader;
    reader.start(spec, batch.features[i], weights_of(batch, i), replica, 0, memory);
    for (std::int64_t tile = 0; tile < reader.tiles(); ++tile) reader.read_tile(tile, setup_.level);
    reader.finish();
  }
}

/// Gives the cores of one replica their parts of its batch.
void BatchReader::cut_for_cores(Step& step, const Feed& feed, std::int32_t first_core,
                                std::span<const FeatureSpec> specs) {
  const std::span<ReplicaBatch> cores =
      std::span(step.replica).subspan(first_core, feed.cores_per_replica);
  for (ReplicaBatch& core : cores) core.part_memory.reset();
  const Batch& batch = feed.batch_of(first_core);
  for (std::int64_t i = 0; i < std::ssize(specs); ++i) {
    if (cut_in_parts(batch.features[i], weights_of(batch, i), i, cores)) continue;
    check_batch(feed, batch, feed.replica_of(first_core), specs);
    EMBERTABLE_ASSERT(!"a batch that cannot be cut is refused");
  }
}

/// Chooses the buckets of each table's update by the first batch of a step.
void BatchReader::choose_buckets(Step& step, const Feed& feed, const Batch& batch,
                                 std::span<const FeatureSpec> specs) {
  const std::lock_guard lock(choosing_buckets_);
  if (!step.cuts.empty()) return;
  for (std::int64_t t = 0; t < std::ssize(expected_); ++t) {
    ExpectedUpdate& update = expected_[t];
    update.unique_share = shares_[t].unique.load(std::memory_order_relaxed);
    update.once_share = shares_[t].once.load(std::memory_order_relaxed);
    update.entries = update.outputs = 0;
    for (const std::int64_t feature : setup_.assembly.tables[t].features) {
      const FeatureIds& ids = batch.features[feature];
      update.entries += ids_in(ids) * setup_.strategy->cores() / feed.parts();
      update.outputs = std::max(update.outputs, outputs_of(ids, specs[feature]));
    }
  }
  embertable::choose_buckets(expected_, setup_.executor->workers(),
                             setup_.options.tuning.bucket_bytes, setup_.level, step.cuts);
}

}  // namespace embertable::engine
