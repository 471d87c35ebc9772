#include "engine/intake/batch_size.h"

#include <string>

#include "embertable/errors.h"
#include "input/detected_shape.h"

namespace embertable::engine {
namespace {

Shape shape_of(const FeatureIds& ids) {
  if (const auto* dense = std::get_if<DenseIds>(&ids)) return input::shape_of(*dense);
  if (const auto* sparse = std::get_if<SparseIds>(&ids)) return sparse->dense_shape;
  const auto rows = std::get<RaggedIds>(ids).row_splits.size() - 1;
  return Shape{rows < 0 ? Shape::kUnknown
                        : rows};  // a row count below 0 means no splits, which the reader refuses
}

std::int64_t leading_dim(const Shape& shape) {
  return shape.has_rank() ? shape[0] : Shape::kUnknown;
}

/// A feature of one replica's batch, or none.
struct Place {
  const Batch* batch = nullptr;
  std::int64_t feature = -1;
  std::int64_t replica = 0;
};

std::string to_string(const Place& at) {
  return "feature '" + at.batch->features.path(at.feature) + "' of replica " +
         std::to_string(at.replica);
}

template <class Visit>
void for_each_feature(std::span<const Batch> batches, std::int32_t first_replica, Visit visit) {
  std::int64_t replica = first_replica;
  for (const Batch& batch : batches) {
    for (std::int64_t i = 0; i < batch.features.size(); ++i)
      visit(Place{&batch, i, replica}, batch.features[i]);
    ++replica;
  }
}

bool any_unknown(std::span<const Batch> batches) {
  for (const Batch& batch : batches) {
    for (const FeatureIds& ids : batch.features.leaves()) {
      if (leading_dim(shape_of(ids)) == Shape::kUnknown) return true;
    }
  }
  return false;
}

/// Sets the unknown leading dim of ids; ids without a rank stay as they are.
void set_leading_dim(FeatureIds& ids, std::int64_t size) {
  const auto known = [&](Shape& shape) {
    if (shape.rank() > 0 && shape[0] == Shape::kUnknown) shape = shape.with_leading(size);
  };
  if (auto* dense = std::get_if<DenseIds>(&ids)) known(dense->shape);
  if (auto* sparse = std::get_if<SparseIds>(&ids)) known(sparse->dense_shape);
}

/// Throws ValueError if both sparse and ragged ids come in one call.
void refuse_mixed_kinds(std::span<const Batch> batches, std::int32_t first_replica,
                        std::string_view call) {
  Place sparse, ragged;
  for_each_feature(batches, first_replica, [&](const Place& at, const FeatureIds& ids) {
    if (!sparse.batch && std::holds_alternative<SparseIds>(ids)) sparse = at;
    if (!ragged.batch && std::holds_alternative<RaggedIds>(ids)) ragged = at;
  });
  if (!sparse.batch || !ragged.batch) return;
  throw ValueError(std::string(call) +
                   ": sparse and ragged ids must not come in one call, got sparse ones of " +
                   to_string(sparse) + " and ragged ones of " + to_string(ragged));
}

/// Returns the batches with unknown leading dims set to `size`: the given batches if no dim is
/// unknown, else copies in `sized`.
std::span<const Batch> with_leading_dim(std::span<const Batch> batches, std::int64_t size,
                                        std::vector<Batch>& sized) {
  if (!any_unknown(batches)) return batches;
  sized.assign(batches.begin(), batches.end());
  for (Batch& batch : sized) {
    for (std::int64_t i = 0; i < batch.features.size(); ++i)
      set_leading_dim(batch.features[i], size);
  }
  return sized;
}

}  // namespace

std::int64_t common_batch_size(std::span<const Batch> batches, std::int32_t first_replica,
                               std::string_view call) {
  std::int64_t common = Shape::kUnknown;
  Place first;
  for_each_feature(batches, first_replica, [&](const Place& at, const FeatureIds& ids) {
    const Shape shape = shape_of(ids);
    if (shape.rank() == 0) {
      throw ValueError(to_string(at) + ": ids must have rank 1 or more, got rank 0");
    }
    const std::int64_t size = leading_dim(shape);
    if (size == Shape::kUnknown || size == common) return;
    if (common != Shape::kUnknown) {
      throw ValueError(std::string(call) + ": all features must have one batch size, got " +
                       std::to_string(common) + " of " + to_string(first) + " and " +
                       std::to_string(size) + " of " + to_string(at));
    }
    common = size;
    first = at;
  });
  return common;
}

std::span<const Batch> with_batch_size(std::span<const Batch> batches, std::int32_t first_replica,
                                       std::string_view call, bool detects,
                                       std::optional<std::int64_t> since_build,
                                       std::vector<Batch>& sized) {
  std::int64_t size = detects ? common_batch_size(batches, first_replica, call) : Shape::kUnknown;
  if (detects && !since_build && size == Shape::kUnknown) {
    throw StateError(std::string(call) +
                     ": the batch size cannot be determined, no feature having a known leading "
                     "dim; call build with a per_replica_batch_size");
  }
  if (size == 0) throw ValueError(std::string(call) + ": the batch size must be >= 1, got 0");
  if (since_build.value_or(Shape::kUnknown) != Shape::kUnknown) {
    if (size != Shape::kUnknown && size != *since_build) {
      throw ValueError(std::string(call) + ": the batch size is " + std::to_string(*since_build) +
                       " since build, got " + std::to_string(size));
    }
    size = *since_build;
  }
  refuse_mixed_kinds(batches, first_replica, call);
  return size == Shape::kUnknown ? batches : with_leading_dim(batches, size, sized);
}

}  // namespace embertable::engine
