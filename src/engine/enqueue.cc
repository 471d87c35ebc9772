#include "base/float_environment.h"
#include "embertable/errors.h"
#include "engine/batch_parts.h"
#include "engine/core.h"
#include "engine/output_shapes.h"

namespace embertable::engine {
namespace {

/// Source: TF tpu_embedding_ops, mode_override; "training" as its documentation has it.
bool is_training(const EnqueueOptions& options) {
  const std::string& mode = options.mode_override;
  if (mode.empty()) return options.training;
  if (mode == "train" || mode == "training" || mode == "unspecified") return true;
  if (mode == "inference") return false;
  throw DataError(
      "enqueue: mode_override must be 'train', 'training', 'inference' or 'unspecified', got '" +
          mode + "'",
      {});
}

}  // namespace

Core::Feed Core::feed_of_all(std::span<const Batch> batches, bool training) const {
  return {batches, 0, cores_, cores_per_replica_ > 1, training};
}

Core::Feed Core::feed_of(std::int32_t replica, const Batch& batch, bool training) const {
  const std::int32_t first = replica * cores_per_replica_;
  return {std::span(&batch, 1), first, first + cores_per_replica_, cores_per_replica_ > 1,
          training};
}

const Batch& Core::batch_of(const Feed& feed, std::int32_t core) const {
  return feed.batches.size() == 1 ? feed.batches.front() : feed.batches[replica_of(core)];
}

void Core::check_batches(const Feed& feed, std::string_view call) const {
  const auto count = static_cast<std::int64_t>(feed.batches.size());
  if (count != 1 && count != replicas_) {
    throw ValueError(std::string(call) + ": there must be one batch, or one for each of " +
                     std::to_string(replicas_) + " replicas, got " + std::to_string(count));
  }
  for (const Batch& batch : feed.batches)
    assert_same_structure(features_.structure(), batch.features.structure(), "features");
}

/// Of one core.
Shape Core::detected_shape(const Feed& feed, const Batch& batch, std::int64_t feature) const {
  const FeatureSpec& spec = specs_[feature];
  const Shape shape = detected_output_shape(batch.features[feature], spec.max_sequence_length,
                                            spec.shape_is_configured, spec.path);
  return shape.rank() < 1 ? shape : shape.with_leading(shape[0] / parts(feed));
}

/// The shapes that the first batches ask for: one for all replicas, or the largest where batches
/// may vary.
std::vector<Shape> Core::detect_shapes(const Feed& feed) const {
  std::vector<Shape> detected;
  for (std::int64_t i = 0; i < features_.size(); ++i) {
    Shape common = detected_shape(feed, feed.batches.front(), i);
    for (std::size_t replica = 1; replica < feed.batches.size(); ++replica) {
      const Shape shape = detected_shape(feed, feed.batches[replica], i);
      if (shapes_[i].has_rank()) {
        check_shape(features_.path(i), shapes_[i], shape, options_.variable_batch);
      } else if (options_.variable_batch && shape.rank() > 0 && shape.rank() == common.rank() &&
                 shape.with_leading(common[0]) == common) {
        if (shape[0] > common[0]) common = shape;
      } else if (!(shape == common)) {
        throw ValueError("feature '" + features_.path(i) + "': replica " + std::to_string(replica) +
                         " asks for output shape " + shape.to_string() + ", replica 0 for " +
                         common.to_string());
      }
    }
    detected.push_back(common);
  }
  return detected;
}

void Core::check_weights_structure(const Batch& batch) const {
  if (batch.weights)
    assert_same_structure(features_.structure(), batch.weights->structure(), "weights");
}

/// Reads a batch as its caller gave it, for what is wrong with it. `shapes`: of one core.
void Core::read_once(const Feed& feed, const Batch& batch, std::int32_t replica,
                     std::span<const Shape> shapes) const {
  Arena memory;
  for (std::int64_t i = 0; i < features_.size(); ++i) {
    FeatureSpec spec = specs_[i];
    spec.output_shape = shapes[i];
    if (feed.cut)
      spec.output_shape = spec.output_shape.with_leading(spec.output_shape[0] * parts(feed));
    FeatureReader reader;
    reader.start(spec, batch.features[i], weights_of(batch, i), replica, 0, memory);
    for (std::int64_t tile = 0; tile < reader.tiles(); ++tile) reader.read_tile(tile, level_);
    reader.finish();
  }
}

/// Everything about the first batches is checked before the first table exists.
void Core::build_for(const Feed& feed) {
  if (!verify)
    throw ValueError(
        "enqueue: the engine is not built, and verify_output_shapes_on_enqueue is off");
  const std::vector<Shape> detected = options_.revision == ApiRevision::kBatchSize
                                          ? shapes_of_batch_size(feed)
                                          : detect_shapes(feed);
  check_shapes(features_, shapes_.leaves(), detected, options_.variable_batch);
  for (const Batch& batch : feed.batches) check_weights_structure(batch);
  const std::vector<Shape> shapes =
      resolve_shapes(features_, shapes_.leaves(), detected, options_.merge_partial_shapes);
  check_shapes_of_cores(shapes);
  for (std::size_t b = 0; b < feed.batches.size(); ++b) {
    read_once(feed, feed.batches[b], replica_of(feed.first) + static_cast<std::int32_t>(b), shapes);
  }
  build(shapes);
}

/// Shapes and structures, in the order in which the original checks them; the first good batch
/// builds.
void Core::prepare(const Feed& feed) {
  for (std::size_t b = 0; feed.cut && b < feed.batches.size(); ++b) {
    for (std::int64_t i = 0; i < features_.size(); ++i)
      check_can_be_cut(feed.batches[b].features[i], cores_per_replica_, features_.path(i),
                       replica_of(feed.first) + static_cast<std::int32_t>(b));
  }
  const std::lock_guard lock(building_);
  if (!built_) return build_for(feed);
  for (const Batch& batch : feed.batches) {
    for (std::int64_t i = 0; verify && i < features_.size(); ++i) {
      check_shape(features_.path(i), shapes_[i], detected_shape(feed, batch, i),
                  options_.variable_batch);
    }
    check_weights_structure(batch);
  }
}

/// Before any argument is looked at.
void Core::require_feedable() const {
  require_accelerated("enqueue");
  require_home("enqueue");
  require_sound("enqueue");
}

void Core::enqueue(Feed feed) {
  const FloatEnvironment ours;
  std::vector<Batch> sized;
  feed.batches = with_batch_size(feed.batches, "enqueue", sized);
  check_batches(feed, "enqueue");
  prepare(feed);
  tables();
  Step& step = schedule_.open(feed.first, feed.last, feed.timeout);
  try {
    read(step, feed);
    schedule_.commit(feed.first, feed.last, feed.training, feed.name);
  } catch (...) {
    schedule_.release(feed.first, feed.last);
    throw;
  }
}

void Core::enqueue(std::span<const Batch> batches, bool training, std::string_view name) {
  require_feedable();
  Feed feed = feed_of_all(batches, training);
  feed.name = name;
  enqueue(feed);
}

void Core::enqueue(std::span<const Batch> batches, const EnqueueOptions& options) {
  require_feedable();
  Feed feed = feed_of_all(batches, is_training(options));
  feed.name = options.name;
  feed.timeout = checked_timeout("enqueue", options.timeout);
  if (!options.device.empty()) {
    feed.first = strategy_->core_of(options.device);
    feed.last = feed.first + 1;
    feed.cut = false;
    if (batches.size() != 1) {
      throw ValueError("enqueue: there must be one batch for device '" + options.device +
                       "', got " + std::to_string(batches.size()));
    }
  }
  enqueue(feed);
}

void Core::enqueue(std::int32_t replica, const Batch& batch, bool training, std::string_view name) {
  require_feedable();
  Feed feed = feed_of(replica, batch, training);
  feed.name = name;
  enqueue(feed);
}

void Core::enqueue(std::int32_t replica, const Batch& batch, const EnqueueOptions& options) {
  require_feedable();
  if (!options.device.empty()) {
    throw ValueError("enqueue: a replica's own call has no device, got '" + options.device + "'");
  }
  Feed feed = feed_of(replica, batch, is_training(options));
  feed.name = options.name;
  feed.timeout = checked_timeout("enqueue", options.timeout);
  enqueue(feed);
}

}  // namespace embertable::engine
