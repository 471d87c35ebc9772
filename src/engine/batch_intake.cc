#include "engine/batch_intake.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>

#include "embertable/errors.h"
#include "engine/batch_parts.h"
#include "engine/batch_size.h"
#include "engine/output_shapes.h"
#include "input/detected_shape.h"
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

}  // namespace

BatchIntake::BatchIntake(const Setup& setup)
    : setup_(setup),
      shapes_(setup.features.structure(), configured_shapes(setup.features)),
      specs_(make_specs(setup)),
      expected_(setup.assembly.tables.size()) {}

std::vector<Shape> BatchIntake::resolve(std::span<const Shape> incoming) const {
  check_shapes(setup_.features, shapes_.leaves(), incoming, false);
  std::vector<Shape> shapes = resolve_shapes(setup_.features, shapes_.leaves(), incoming,
                                             setup_.options.merge_partial_shapes);
  check_shapes_of_cores(shapes);
  return shapes;
}

void BatchIntake::use(std::span<const Shape> shapes, const Tables& tables,
                      std::span<const NamedShares> shares) noexcept {
  for (std::int64_t i = 0; i < std::ssize(shapes); ++i)
    specs_[i].output_shape = shapes_[i] = shapes[i];
  shares_ = shares;
  for (std::int64_t t = 0; t < std::ssize(expected_); ++t) {
    const StoredTable& table = tables.tables()[t];
    const ResolvedTable& resolved = setup_.assembly.tables[t];
    const RowBlock block = table.shards.front().block();
    expected_[t] = {
        .rows = table.vocabulary_size,
        .dim = table.dim,
        .row_bytes = updated_bytes(block),
        .host_bytes = block.rows * updated_bytes(block),
        .rounds = block.is_half(),
        .one_source = setup_.cores == 1 && setup_.all_hosts == 1 && resolved.features.size() == 1,
        .rows_alone = resolved.optimizer->options().use_gradient_accumulation &&
                      !resolved.rule->steps_every_row(*resolved.optimizer),
        .fused = resolved.rule->update_groups(setup_.level, *resolved.optimizer, table.dim,
                                              block.type) != nullptr};
  }
}

namespace {

bool are_splits(const IntegerSpan& splits, const IntegerSpan& values) {
  return splits.size() > 0 && splits[0] == 0 && splits[splits.size() - 1] == values.size();
}

/// Refuses ragged ids whose two arrays are each other's, which a check of shapes would not tell.
void refuse_if_swapped(const RaggedIds& ids, const std::string& path) {
  if (ids.values.size() < 2 || !are_splits(ids.values, ids.row_splits)) return;
  throw ValueError("feature '" + path +
                   "': row_splits and values seem to be swapped: values go from 0 to " +
                   std::to_string(ids.row_splits.size()) + ", the number of row_splits");
}

[[noreturn]] void refuse_number(std::string_view call, std::int32_t replicas,
                                std::int64_t batches) {
  throw ValueError(std::string(call) + ": there must be one batch, or one for each of " +
                   std::to_string(replicas) + " replicas, got " + std::to_string(batches));
}

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

/// Source: TF tpu_embedding_ops, mode_override; "training" as its documentation has it.
bool is_training_mode(const std::string& mode) {
  if (mode == "train" || mode == "training" || mode == "unspecified") return true;
  if (mode == "inference") return false;
  throw DataError(
      "enqueue: mode_override must be 'train', 'training', 'inference' or 'unspecified', got '" +
          mode + "'",
      {});
}

void choose_device(Feed& feed, const Setup& setup, const std::string& device) {
  const std::int32_t core =
      setup.strategy->core_of(device) - setup.strategy->first_replica() * setup.cores_per_replica;
  if (core < 0 || core >= setup.cores) {
    throw ValueError("enqueue: the device must be of this process, host " +
                     std::to_string(setup.first_host) + ", got '" + device + "'");
  }
  feed.cores = {core, core + 1};
  feed.cut = false;
  if (feed.batches.size() != 1) {
    throw ValueError("enqueue: there must be one batch for device '" + device + "', got " +
                     std::to_string(feed.batches.size()));
  }
}

}  // namespace

Feed BatchIntake::feed(std::span<const Batch> batches, const EnqueueOptions& options,
                       std::optional<std::int32_t> replica) const {
  const std::string &device = options.device, &mode = options.mode_override;
  if (replica && !device.empty())
    throw ValueError("enqueue: a replica's own call has no device, got '" + device + "'");
  Feed feed = {.batches = batches,
               .cores = {0, setup_.cores},
               .cores_per_replica = setup_.cores_per_replica,
               .cut = setup_.cores_per_replica > 1,
               .training = mode.empty() ? options.training : is_training_mode(mode),
               .name = options.name,
               .timeout = Schedule::checked_timeout("enqueue", options.timeout)};
  if (!device.empty()) choose_device(feed, setup_, device);
  if (replica) {
    const std::int32_t first = *replica * setup_.cores_per_replica;
    feed.cores = {first, first + setup_.cores_per_replica};
  }
  return feed;
}

void BatchIntake::check(Feed& feed, std::string_view call, const TableStore& store,
                        FunctionRef<void(std::span<const Shape>)> build) const {
  if (setup_.has_one_batch_size())
    feed.batches =
        with_batch_size(feed.batches, call, verifies_shapes_, size_since_build(store), feed.sized);
  const auto count = std::ssize(feed.batches);
  if (count != 1 && count != setup_.replicas) refuse_number(call, setup_.replicas, count);
  for (const Batch& batch : feed.batches)
    assert_same_structure(setup_.features.structure(), batch.features.structure(), "features");
  for (const Batch& batch : feed.batches) {
    for (std::int64_t i = 0; verifies_shapes_ && i < setup_.features.size(); ++i) {
      const auto* ids = std::get_if<RaggedIds>(&batch.features[i]);
      if (ids != nullptr && !are_splits(ids->row_splits, ids->values))
        refuse_if_swapped(*ids, setup_.features.path(i));
    }
  }
  if (feed.cut) check_cuts(feed);
  const std::lock_guard lock(store.building());
  if (!store.built()) return build(first_shapes(feed, call));
  for (const Batch& batch : feed.batches) {
    for (std::int64_t i = 0; verifies_shapes_ && i < setup_.features.size(); ++i) {
      check_shape(setup_.features.path(i), shapes_[i], detected_shape(feed, batch, i),
                  setup_.options.variable_batch);
    }
    check_weights_structure(batch);
  }
}

void BatchIntake::check_cuts(const Feed& feed) const {
  std::int32_t replica = feed.replica_of(feed.cores.first);
  for (const Batch& batch : feed.batches) {
    for (std::int64_t i = 0; i < setup_.features.size(); ++i)
      check_can_be_cut(batch.features[i], feed.parts(), setup_.features.path(i), replica);
    ++replica;
  }
}

/// Returns the batch size in force, none before the build.
std::optional<std::int64_t> BatchIntake::size_since_build(const TableStore& store) const {
  if (!store.built()) return std::nullopt;
  return setup_.features.size() > 0 ? shapes_[0][0] : Shape::kUnknown;
}

/// Returns the shapes that the first batches build with. Checks everything about these batches, so
/// that an invalid one leaves no table behind.
std::vector<Shape> BatchIntake::first_shapes(const Feed& feed, std::string_view call) const {
  if (!verifies_shapes_)
    throw ValueError(std::string(call) +
                     ": the engine is not built, and verify_output_shapes_on_enqueue is off");
  const std::vector<Shape> detected = detect_shapes(feed, call);
  check_shapes(setup_.features, shapes_.leaves(), detected, setup_.options.variable_batch);
  for (const Batch& batch : feed.batches) check_weights_structure(batch);
  std::vector<Shape> shapes = resolve_shapes(setup_.features, shapes_.leaves(), detected,
                                             setup_.options.merge_partial_shapes);
  check_shapes_of_cores(shapes);
  std::vector<FeatureSpec> specs = specs_;
  for (std::int64_t i = 0; i < std::ssize(specs); ++i) specs[i].output_shape = shapes[i];
  check_values(feed, specs);
  return shapes;
}

/// Returns the shapes that batches imply: one for all replicas, or the largest if batches may vary.
std::vector<Shape> BatchIntake::detect_shapes(const Feed& feed, std::string_view call) const {
  std::vector<Shape> detected;
  if (setup_.has_one_batch_size()) {
    detected = shapes_from_batch_size(setup_.features, common_batch_size(feed.batches, call));
    for (const Batch& batch : feed.batches)
      for (std::int64_t i = 0; i < setup_.features.size(); ++i)
        check_shape(setup_.features.path(i), detected[i], detected_shape(feed, batch, i), false);
    return detected;
  }
  const bool may_vary = setup_.options.variable_batch;
  for (std::int64_t i = 0; i < setup_.features.size(); ++i) {
    Shape common = detected_shape(feed, feed.batches.front(), i);
    for (std::int64_t replica = 1; replica < std::ssize(feed.batches); ++replica) {
      const Shape shape = detected_shape(feed, feed.batches[replica], i);
      if (shapes_[i].has_rank()) {
        check_shape(setup_.features.path(i), shapes_[i], shape, may_vary);
      } else if (may_vary && shape.rank() > 0 && shape.rank() == common.rank() &&
                 shape.with_leading(common[0]) == common) {
        if (shape[0] > common[0]) common = shape;
      } else if (!(shape == common)) {
        throw ValueError("feature '" + setup_.features.path(i) + "': replica " +
                         std::to_string(replica) + " asks for output shape " + shape.to_string() +
                         ", replica 0 for " + common.to_string());
      }
    }
    detected.push_back(common);
  }
  return detected;
}

/// Returns the output shape of one core that a batch implies.
Shape BatchIntake::detected_shape(const Feed& feed, const Batch& batch,
                                  std::int64_t feature) const {
  const FeatureSpec& spec = specs_[feature];
  const Shape shape = detected_output_shape(batch.features[feature], spec.max_sequence_length,
                                            spec.shape_is_configured, spec.path);
  return feed.parts() == 1 || shape.rank() < 1 ? shape
                                               : shape.with_leading(shape[0] / feed.parts());
}

void BatchIntake::check_weights_structure(const Batch& batch) const {
  if (batch.weights)
    assert_same_structure(setup_.features.structure(), batch.weights->structure(), "weights");
}

/// Requires axis 0 in all shapes, because the activations of a replica's cores are joined on it.
void BatchIntake::check_shapes_of_cores(std::span<const Shape> shapes) const {
  for (std::int64_t i = 0; setup_.cores_per_replica > 1 && i < std::ssize(shapes); ++i) {
    if (shapes[i].rank() > 0) continue;
    throw ValueError("feature '" + setup_.features.path(i) +
                     "': output shape must have rank >= 1 where a replica has " +
                     std::to_string(setup_.cores_per_replica) + " cores, got " +
                     shapes[i].to_string());
  }
}

void BatchIntake::read(Step& step, const Feed& feed) {
  std::vector<CoreBatch::Item>& items = step.core[feed.cores.first].items;
  items.clear();
  choose_buckets(step, feed);
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
    if (feed.cut) check_values(feed, specs_);
    throw;
  }
}

/// Reads each batch of a call uncut into temporary memory, to find what is wrong with it. `specs`
/// hold the output shapes of one core, fully defined.
void BatchIntake::check_values(const Feed& feed, std::span<const FeatureSpec> specs) const {
  std::int32_t replica = feed.replica_of(feed.cores.first);
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
void BatchIntake::cut_for_cores(Step& step, const Feed& feed, std::int32_t first_core) {
  const std::span<CoreBatch> cores =
      std::span(step.core).subspan(first_core, feed.cores_per_replica);
  for (CoreBatch& core : cores) core.part_memory.reset();
  const Batch& batch = feed.batch_of(first_core);
  for (std::int64_t i = 0; i < std::ssize(specs_); ++i) {
    if (cut_in_parts(batch.features[i], weights_of(batch, i), i, cores)) continue;
    check_values(feed, specs_);
    // All of it is good: the indices that were not were changed once more.
    input::Refusal{&specs_[i], feed.replica_of(first_core)}.at(
        -1, -1, "indices must not change during the call");
  }
}

/// Chooses the buckets of each table's update by the first call that feeds a step, as if its cores
/// stood for all. Where it feeds some of them, the others may bring as much as in the last step.
void BatchIntake::choose_buckets(Step& step, const Feed& feed) {
  const std::lock_guard lock(choosing_buckets_);
  if (!step.cuts.empty()) return;
  for (std::int64_t t = 0; t < std::ssize(expected_); ++t) {
    ExpectedUpdate& update = expected_[t];
    update.unique_share = shares_[t].unique.load(std::memory_order_relaxed);
    update.once_share = shares_[t].once.load(std::memory_order_relaxed);
    update.entries = update.outputs = 0;
    for (const Batch& batch : feed.batches) {
      for (const std::int64_t feature : setup_.assembly.tables[t].features) {
        const FeatureIds& ids = batch.features[feature];
        update.entries += ids_in(ids);
        update.outputs = std::max(update.outputs, outputs_of(ids, specs_[feature]));
      }
    }
    update.entries *= setup_.strategy->cores();
    update.entries /= std::ssize(feed.batches) * feed.parts();
    if (feed.cores.last - feed.cores.first < setup_.cores)
      update.entries = std::max(update.entries, shares_[t].entries.load(std::memory_order_relaxed));
  }
  embertable::choose_buckets(expected_, setup_.executor->workers(),
                             setup_.options.tuning.bucket_bytes, setup_.level, step.cuts);
}

}  // namespace embertable::engine
