// The batch-size revision: one batch size for all features of all replicas. Source: TF 2.4
// tpu_embedding_v2.py, TPUEmbedding._get_batch_size, _maybe_build, _create_config_proto.
#include "embertable/errors.h"
#include "embertable/tensorflow/tpu_embedding_configuration.h"
#include "engine/core.h"
#include "engine/output_shapes.h"
#include "input/rank_rule.h"

namespace embertable::engine {
namespace {

Shape shape_of(const FeatureIds& ids) {
  if (const auto* dense = std::get_if<DenseIds>(&ids)) return input::shape_of(*dense);
  if (const auto* sparse = std::get_if<SparseIds>(&ids)) return sparse->dense_shape;
  const auto rows = std::get<RaggedIds>(ids).row_splits.size() - 1;
  return Shape{rows < 0 ? Shape::kUnknown : rows};  // no splits at all are refused by the reader
}

std::int64_t leading_dim(const Shape& shape) {
  return shape.has_rank() ? shape[0] : Shape::kUnknown;
}

/// A feature of one batch; of none at first.
struct Place {
  std::size_t replica = 0;
  std::int64_t feature = -1;
};

std::string to_string(std::span<const Batch> batches, const Place& at) {
  return "feature '" + batches[at.replica].features.path(at.feature) + "' of replica " +
         std::to_string(at.replica);
}

template <class Visit>
void for_each_feature(std::span<const Batch> batches, Visit visit) {
  for (std::size_t replica = 0; replica < batches.size(); ++replica) {
    const Nested<FeatureIds>& features = batches[replica].features;
    for (std::int64_t i = 0; i < features.size(); ++i) visit(Place{replica, i}, features[i]);
  }
}

/// The leading dim that all features of all batches have in common, or kUnknown.
std::int64_t common_batch_size(std::span<const Batch> batches, std::string_view call) {
  std::int64_t common = Shape::kUnknown;
  Place first;
  for_each_feature(batches, [&](const Place& at, const FeatureIds& ids) {
    const Shape shape = shape_of(ids);
    if (shape.rank() == 0) {
      throw ValueError(to_string(batches, at) + ": ids must have rank 1 or more, got rank 0");
    }
    const std::int64_t size = leading_dim(shape);
    if (size == Shape::kUnknown || size == common) return;
    if (common != Shape::kUnknown) {
      throw ValueError(std::string(call) + ": all features must have one batch size, got " +
                       std::to_string(common) + " of " + to_string(batches, first) + " and " +
                       std::to_string(size) + " of " + to_string(batches, at));
    }
    common = size;
    first = at;
  });
  return common;
}

void refuse_mixed_kinds(std::span<const Batch> batches, std::string_view call) {
  Place sparse, ragged;
  for_each_feature(batches, [&](const Place& at, const FeatureIds& ids) {
    if (sparse.feature < 0 && std::holds_alternative<SparseIds>(ids)) sparse = at;
    if (ragged.feature < 0 && std::holds_alternative<RaggedIds>(ids)) ragged = at;
  });
  if (sparse.feature < 0 || ragged.feature < 0) return;
  throw ValueError(
      std::string(call) + ": sparse and ragged ids must not come in one call, got sparse ones of " +
      to_string(batches, sparse) + " and ragged ones of " + to_string(batches, ragged));
}

bool any_unknown(std::span<const Batch> batches) {
  for (const Batch& batch : batches) {
    for (const FeatureIds& ids : batch.features.leaves()) {
      if (leading_dim(shape_of(ids)) == Shape::kUnknown) return true;
    }
  }
  return false;
}

/// The same ids with their unknown leading dim known; without a rank they stay as they are.
void set_leading_dim(FeatureIds& ids, std::int64_t size) {
  const auto known = [&](Shape& shape) {
    if (shape.rank() > 0 && shape[0] == Shape::kUnknown) shape = shape.with_leading(size);
  };
  if (auto* dense = std::get_if<DenseIds>(&ids)) known(dense->shape);
  if (auto* sparse = std::get_if<SparseIds>(&ids)) known(sparse->dense_shape);
}

}  // namespace

void Core::check_revision() const {
  if (options_.revision != ApiRevision::kBatchSize) return;
  if (options_.variable_batch) {
    throw ValueError(
        "embedding options: variable_batch must be off in the batch-size revision, got true");
  }
  if (cores_per_replica_ > 1) {
    throw ValueError(
        "embedding options: replicas must have one core in the batch-size revision, got " +
        std::to_string(cores_per_replica_));
  }
  for (std::int64_t i = 0; i < features_.size(); ++i) {
    if (features_[i].output_shape.has_rank()) {
      throw ValueError("feature '" + features_.path(i) +
                       "': output_shape must be unset in the batch-size revision, got " +
                       features_[i].output_shape.to_string());
    }
  }
}

std::span<const Batch> Core::with_batch_size(std::span<const Batch> batches, std::string_view call,
                                             std::vector<Batch>& sized) const {
  if (options_.revision != ApiRevision::kBatchSize) return batches;
  std::int64_t size = verify ? common_batch_size(batches, call) : Shape::kUnknown;
  if (verify && !built_ && size == Shape::kUnknown) {
    throw StateError(std::string(call) +
                     ": the batch size cannot be determined, no feature having a known leading "
                     "dim; call build with a per_replica_batch_size");
  }
  if (size == 0) throw ValueError(std::string(call) + ": the batch size must be >= 1, got 0");
  if (built_ && features_.size() > 0) {
    const std::int64_t built = shapes_[0][0];
    if (size != Shape::kUnknown && size != built) {
      throw ValueError(std::string(call) + ": the batch size is " + std::to_string(built) +
                       " since build, got " + std::to_string(size));
    }
    size = built;
  }
  refuse_mixed_kinds(batches, call);
  if (size == Shape::kUnknown || !any_unknown(batches)) return batches;
  sized.assign(batches.begin(), batches.end());
  for (Batch& batch : sized) {
    for (std::int64_t i = 0; i < batch.features.size(); ++i)
      set_leading_dim(batch.features[i], size);
  }
  return sized;
}

/// Of the first batches, whose batch size is known.
std::vector<Shape> Core::shapes_of_batch_size(const Feed& feed) const {
  const std::vector<Shape> shapes =
      shapes_from_batch_size(features_, common_batch_size(feed.batches, "enqueue"));
  for (const Batch& batch : feed.batches) {
    for (std::int64_t i = 0; i < features_.size(); ++i) {
      check_shape(features_.path(i), shapes[i], detected_shape(feed, batch, i), false);
    }
  }
  return shapes;
}

/// The batch-size revision has a batch size, and output rows of a sample, in place of features.
wire::TPUEmbeddingConfiguration Core::by_revision(wire::TPUEmbeddingConfiguration of) const {
  if (options_.revision != ApiRevision::kBatchSize) return of;
  for (std::size_t i = 0; i < of.feature_descriptor.size(); ++i) {
    const wire::FeatureDescriptor& feature = of.feature_descriptor[i];
    of.batch_size_per_tensor_core = feature.input_shape[0];
    of.table_descriptor[feature.table_id].num_features +=
        feature.input_shape.size() > 1 ? feature.input_shape[1] : 1;
  }
  of.feature_descriptor.clear();
  return of;
}

}  // namespace embertable::engine
