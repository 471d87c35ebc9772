#include "engine/intake/batch_reader.h"

#include <utility>

#include "embertable/errors.h"
#include "engine/intake/batch_parts.h"
#include "step/workers.h"

namespace embertable::engine {
namespace {

std::vector<FeatureSpec> make_specs(const Setup& setup) {
  std::vector<FeatureSpec> specs;
  for (std::int64_t i = 0; i < setup.features.size(); ++i) {
    const FeatureConfig& feature = setup.features[i];
    const TableConfig& table = setup.table(i).config;
    FeatureSpec spec;
    spec.path = setup.features.path(i);
    spec.vocabulary_size = table.vocabulary_size;
    spec.combiner = table.combiner;
    spec.max_sequence_length = feature.max_sequence_length;
    spec.shape_is_configured = feature.output_shape.has_rank();
    spec.drop_out_of_range = setup.options.out_of_range == OutOfRange::kDrop;
    spec.variable_batch = setup.options.variable_batch;
    spec.wide = needs_wide_numbers(table.vocabulary_size);
    specs.push_back(std::move(spec));
  }
  return specs;
}

/// None where the batch has no weights.
const FeatureWeights& weights_of(const Batch& batch, std::int64_t feature) {
  static const FeatureWeights kNone;
  return batch.weights ? (*batch.weights)[feature] : kNone;
}

}  // namespace

BatchReader::BatchReader(const Setup& setup) : setup_(setup), specs_(make_specs(setup)) {}

void BatchReader::use(std::span<const Shape> shapes) noexcept {
  for (std::size_t i = 0; i < specs_.size(); ++i) specs_[i].output_shape = shapes[i];
}

void BatchReader::read(Step& step, const Feed& feed) const {
  std::vector<CoreBatch::Item>& items = step.core[feed.cores.first].items;
  items.clear();
  std::int64_t ids = 0;
  try {
    for (std::int32_t c = feed.cores.first; c < feed.cores.last; ++c) {
      if (feed.cut && c % feed.cores_per_replica == 0) cut_for_cores(step, feed, c);
      const Batch& batch = feed.batch_of(c);
      CoreBatch& core = step.core[c];
      core.memory.reset();
      for (std::int64_t i = 0; i < std::ssize(specs_); ++i) {
        CoreBatch::Feature& feature = core.features[i];
        const UpdateCut cut = step.cuts[setup_.assembly.table_of[i]];
        // Where rows named once are set apart, entries are counted when all of them are there.
        const bool counts = feed.training && setup_.all_hosts == 1 && cut.once_ranges == 0;
        feature.reader.start(specs_[i], feed.cut ? feature.part_ids : batch.features[i],
                             feed.cut ? feature.part_weights : weights_of(batch, i),
                             feed.replica_of(c), counts ? cut.buckets : 0, core.memory);
        for (std::int64_t tile = 0; tile < feature.reader.tiles(); ++tile)
          items.push_back({&feature.reader, tile});
        ids += feature.reader.plan().row.size;
      }
    }
    run_items(*setup_.executor, setup_.options.tuning.inline_floats, std::ssize(items), ids,
              [&](const WorkItem& work) {
                items[work.index].reader->read_tile(items[work.index].tile, setup_.level);
              });
    for (std::int32_t c = feed.cores.first; c < feed.cores.last; ++c)
      for (CoreBatch::Feature& feature : step.core[c].features) feature.reader.finish();
  } catch (const ValueError&) {
    // The error names a place in a part: find that place in the whole batch.
    if (feed.cut) read_uncut(feed, specs_);
    throw;
  }
}

void BatchReader::check_values(const Feed& feed, std::span<const Shape> shapes) const {
  std::vector<FeatureSpec> specs = specs_;
  for (std::size_t i = 0; i < specs.size(); ++i) specs[i].output_shape = shapes[i];
  read_uncut(feed, specs);
}

/// Reads each batch of a call uncut into temporary memory, to find what is wrong with it. `specs`
/// hold the output shapes of one core.
void BatchReader::read_uncut(const Feed& feed, std::span<const FeatureSpec> specs) const {
  std::int32_t replica = feed.first_replica();
  for (const Batch& batch : feed.batches) {
    Arena memory;
    for (std::int64_t i = 0; i < std::ssize(specs); ++i) {
      FeatureSpec spec = specs[i];
      if (feed.cut)
        spec.output_shape = spec.output_shape.with_leading(spec.output_shape[0] * feed.parts());
      FeatureReader reader;
      reader.start(spec, batch.features[i], weights_of(batch, i), replica, 0, memory);
      for (std::int64_t t = 0; t < reader.tiles(); ++t) reader.read_tile(t, setup_.level);
      reader.finish();
    }
    ++replica;
  }
}

/// Gives the cores of one replica their parts of its batch.
void BatchReader::cut_for_cores(Step& step, const Feed& feed, std::int32_t first_core) const {
  const std::span<CoreBatch> cores =
      std::span(step.core).subspan(first_core, feed.cores_per_replica);
  for (CoreBatch& core : cores) core.part_memory.reset();
  const Batch& batch = feed.batch_of(first_core);
  for (std::int64_t i = 0; i < std::ssize(specs_); ++i) {
    if (cut_in_parts(batch.features[i], weights_of(batch, i), i, cores)) continue;
    read_uncut(feed, specs_);
    // All of it is good: the indices that were not were changed once more.
    input::Refusal{&specs_[i], feed.replica_of(first_core)}.at(
        -1, -1, "indices must not change during the call");
  }
}

}  // namespace embertable::engine
