#include "engine/batch_intake.h"

#include <mutex>
#include <string>
#include <utility>

#include "embertable/errors.h"
#include "engine/batch_parts.h"
#include "engine/batch_size.h"
#include "engine/output_shapes.h"
#include "input/detected_shape.h"

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
      reader_(setup) {}

std::vector<Shape> BatchIntake::resolve(std::span<const Shape> incoming) const {
  check_shapes(setup_.features, shapes_.leaves(), incoming, false);
  std::vector<Shape> shapes = resolve_shapes(setup_.features, shapes_.leaves(), incoming,
                                             setup_.options.merge_partial_shapes);
  check_shapes_of_cores(shapes);
  return shapes;
}

void BatchIntake::use(std::span<const Shape> shapes, const Tables& tables,
                      std::span<const NamedShares> shares) noexcept {
  reader_.use(tables, shares);
  for (std::int64_t i = 0; i < std::ssize(shapes); ++i)
    specs_[i].output_shape = shapes_[i] = shapes[i];
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
  if (setup_.has_one_batch_size()) complete_batch_size(feed, call, store.built());
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
  if (!store.built()) return build(first_shapes(feed));
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

/// Sets the dims that batches of the batch-size revision leave open.
void BatchIntake::complete_batch_size(Feed& feed, std::string_view call, bool built) const {
  std::int64_t size = verifies_shapes_ ? common_batch_size(feed.batches, call) : Shape::kUnknown;
  if (verifies_shapes_ && !built && size == Shape::kUnknown) {
    throw StateError(std::string(call) +
                     ": the batch size cannot be determined, no feature having a known leading "
                     "dim; call build with a per_replica_batch_size");
  }
  if (size == 0) throw ValueError(std::string(call) + ": the batch size must be >= 1, got 0");
  if (built && setup_.features.size() > 0) {
    const std::int64_t since_build = shapes_[0][0];
    if (size != Shape::kUnknown && size != since_build) {
      throw ValueError(std::string(call) + ": the batch size is " + std::to_string(since_build) +
                       " since build, got " + std::to_string(size));
    }
    size = since_build;
  }
  refuse_mixed_kinds(feed.batches, call);
  if (size != Shape::kUnknown) feed.batches = with_leading_dim(feed.batches, size, feed.sized);
}

/// Returns the shapes that the first batches build with. Checks everything about these batches, so
/// that an invalid one leaves no table behind.
std::vector<Shape> BatchIntake::first_shapes(const Feed& feed) const {
  if (!verifies_shapes_)
    throw ValueError(
        "enqueue: the engine is not built, and verify_output_shapes_on_enqueue is off");
  const std::vector<Shape> detected = detect_shapes(feed);
  check_shapes(setup_.features, shapes_.leaves(), detected, setup_.options.variable_batch);
  for (const Batch& batch : feed.batches) check_weights_structure(batch);
  std::vector<Shape> shapes = resolve_shapes(setup_.features, shapes_.leaves(), detected,
                                             setup_.options.merge_partial_shapes);
  check_shapes_of_cores(shapes);
  std::vector<FeatureSpec> specs = specs_;
  for (std::int64_t i = 0; i < std::ssize(specs); ++i) specs[i].output_shape = shapes[i];
  reader_.check(feed, specs);
  return shapes;
}

/// Returns the shapes that batches imply: one for all replicas, or the largest if batches may vary.
std::vector<Shape> BatchIntake::detect_shapes(const Feed& feed) const {
  std::vector<Shape> detected;
  if (setup_.has_one_batch_size()) {
    detected = shapes_from_batch_size(setup_.features, common_batch_size(feed.batches, "enqueue"));
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

}  // namespace embertable::engine
