#include "engine/intake/batch_intake.h"

#include <string>

#include "embertable/errors.h"
#include "engine/intake/batch_parts.h"

namespace embertable::engine {
namespace {

bool are_splits(const IntegerSpan& splits, const IntegerSpan& values) {
  return splits.size() > 0 && splits[0] == 0 && splits[splits.size() - 1] == values.size();
}

/// Refuses ragged ids whose two arrays are each other's, which a check of shapes would not tell.
void refuse_if_swapped(const FeatureIds& ids, const std::string& path) {
  const auto* ragged = std::get_if<RaggedIds>(&ids);
  if (ragged == nullptr || are_splits(ragged->row_splits, ragged->values)) return;
  if (ragged->values.size() < 2 || !are_splits(ragged->values, ragged->row_splits)) return;
  throw ValueError("feature '" + path +
                   "': row_splits and values seem to be swapped: values go from 0 to " +
                   std::to_string(ragged->row_splits.size()) + ", the number of row_splits");
}

}  // namespace

BatchIntake::BatchIntake(const Setup& setup)
    : setup_(setup), shapes_(setup), reader_(setup), buckets_(setup) {}

void BatchIntake::check(Feed& feed, std::string_view call, bool built) const {
  shapes_.complete(feed, call, built);
  const auto count = std::ssize(feed.batches);
  if (count != 1 && count != setup_.replicas) {
    throw ValueError(std::string(call) + ": there must be one batch, or one for each of " +
                     std::to_string(setup_.replicas) + " replicas, got " + std::to_string(count));
  }
  for (const Batch& batch : feed.batches)
    assert_same_structure(setup_.features.structure(), batch.features.structure(), "features");
  std::int32_t replica = feed.first_replica();
  for (const Batch& batch : feed.batches) {
    for (std::int64_t i = 0; i < setup_.features.size(); ++i) {
      const FeatureIds& ids = batch.features[i];
      if (shapes_.verifies()) refuse_if_swapped(ids, setup_.features.path(i));
      if (feed.cut) check_can_be_cut(ids, feed.parts(), setup_.features.path(i), replica);
    }
    ++replica;
  }
}

std::vector<Shape> BatchIntake::first_shapes(const Feed& feed, std::string_view call) const {
  std::vector<Shape> shapes = shapes_.resolve(feed, call);
  check_weights(feed);
  reader_.check_values(feed, shapes);
  return shapes;
}

void BatchIntake::check_built(const Feed& feed) const {
  shapes_.check(feed);
  check_weights(feed);
}

void BatchIntake::check_weights(const Feed& feed) const {
  for (const Batch& batch : feed.batches)
    if (batch.weights)
      assert_same_structure(setup_.features.structure(), batch.weights->structure(), "weights");
}

void BatchIntake::use(std::span<const Shape> shapes, std::span<const StepTable> tables,
                      std::span<const NamedShares> shares) noexcept {
  shapes_.use(shapes);
  reader_.use(shapes);
  buckets_.use(tables, shares, shapes);
}

void BatchIntake::read(Step& step, const Feed& feed) {
  buckets_.choose(step, feed);
  reader_.read(step, feed);
}

}  // namespace embertable::engine
