#include "engine/intake/known_shapes.h"

#include <optional>
#include <string>

#include "embertable/errors.h"
#include "engine/intake/batch_size.h"
#include "engine/intake/output_shapes.h"
#include "input/detected_shape.h"

namespace embertable::engine {
namespace {

/// Whether the dims that a batch asks for say something of the stored shape: where that is known,
/// and where ranks differ, the data are checked alone.
bool completes(const Shape& asked, const Shape& stored) {
  if (!stored.has_rank()) return true;
  return !stored.fully_defined() && asked.rank() == stored.rank() && asked.fully_defined();
}

bool differ_on_axis_0_alone(const Shape& a, const Shape& b) {
  return a.rank() > 0 && a.rank() == b.rank() && a.with_leading(b[0]) == b;
}

}  // namespace

KnownShapes::KnownShapes(const Setup& setup)
    : setup_(setup), shapes_(setup.features.structure(), configured_shapes(setup.features)) {}

std::vector<Shape> KnownShapes::resolve(std::span<const Shape> incoming) const {
  check_shapes(setup_.features, shapes_.leaves(), incoming, false);
  std::vector<Shape> shapes = resolve_shapes(setup_.features, shapes_.leaves(), incoming,
                                             setup_.options.merge_partial_shapes);
  check_shapes_of_cores(shapes);
  return shapes;
}

std::vector<Shape> KnownShapes::resolve(const Feed& feed, std::string_view call) const {
  if (!verifies_)
    throw ValueError(std::string(call) +
                     ": the engine is not built, and verify_output_shapes_on_enqueue is off");
  std::vector<Shape> asked;
  if (setup_.has_one_batch_size()) {
    asked = shapes_from_batch_size(setup_.features,
                                   common_batch_size(feed.batches, feed.first_replica(), call));
    for (const Batch& batch : feed.batches)
      for (std::int64_t i = 0; i < setup_.features.size(); ++i)
        check_shape(setup_.features.path(i), asked[i], asked_for(feed, batch, i), false);
  } else {
    for (std::int64_t i = 0; i < setup_.features.size(); ++i)
      asked.push_back(asked_for_by_all(feed, i));
  }
  std::vector<Shape> shapes =
      resolve_shapes(setup_.features, shapes_.leaves(), asked, setup_.options.merge_partial_shapes);
  check_shapes_of_cores(shapes);
  return shapes;
}

void KnownShapes::use(std::span<const Shape> shapes) noexcept {
  for (std::int64_t i = 0; i < std::ssize(shapes); ++i) shapes_[i] = shapes[i];
}

void KnownShapes::complete(Feed& feed, std::string_view call, bool built) const {
  if (!setup_.has_one_batch_size()) return;
  std::optional<std::int64_t> since_build;
  if (built) since_build = setup_.features.size() > 0 ? shapes_[0][0] : Shape::kUnknown;
  feed.batches =
      with_batch_size(feed.batches, feed.first_replica(), call, verifies_, since_build, feed.sized);
}

void KnownShapes::check(const Feed& feed) const {
  if (!verifies_) return;
  for (const Batch& batch : feed.batches)
    for (std::int64_t i = 0; i < setup_.features.size(); ++i)
      check_shape(setup_.features.path(i), shapes_[i], asked_for(feed, batch, i),
                  setup_.options.variable_batch);
}

/// Returns the output shape of one core that a batch asks for.
Shape KnownShapes::asked_for(const Feed& feed, const Batch& batch, std::int64_t feature) const {
  const FeatureConfig& config = setup_.features[feature];
  const Shape shape =
      detected_output_shape(batch.features[feature], config.max_sequence_length,
                            config.output_shape.has_rank(), setup_.features.path(feature));
  return feed.parts() == 1 || shape.rank() < 1 ? shape
                                               : shape.with_leading(shape[0] / feed.parts());
}

/// Returns the one shape that all batches ask for, or the largest if they may vary.
Shape KnownShapes::asked_for_by_all(const Feed& feed, std::int64_t feature) const {
  const bool may_vary = setup_.options.variable_batch;
  const std::string path = setup_.features.path(feature);
  std::optional<Shape> common;
  std::int32_t common_replica = 0, replica = feed.first_replica();
  for (const Batch& batch : feed.batches) {
    const Shape shape = asked_for(feed, batch, feature);
    check_shape(path, shapes_[feature], shape, may_vary);
    if (completes(shape, shapes_[feature])) {
      if (!common) {
        common = shape;
        common_replica = replica;
      } else if (may_vary && differ_on_axis_0_alone(shape, *common)) {
        if (shape[0] > (*common)[0]) common = shape;
      } else if (!(shape == *common)) {
        throw ValueError("feature '" + path + "': replica " + std::to_string(replica) +
                         " asks for output shape " + shape.to_string() + ", replica " +
                         std::to_string(common_replica) + " for " + common->to_string());
      }
    }
    ++replica;
  }
  return common ? *common : asked_for(feed, feed.batches.front(), feature);
}

/// Requires axis 0 in all shapes, because the activations of a replica's cores are joined on it.
void KnownShapes::check_shapes_of_cores(std::span<const Shape> shapes) const {
  for (std::int64_t i = 0; setup_.cores_per_replica > 1 && i < std::ssize(shapes); ++i) {
    if (shapes[i].rank() > 0) continue;
    throw ValueError("feature '" + setup_.features.path(i) +
                     "': output shape must have rank >= 1 where a replica has " +
                     std::to_string(setup_.cores_per_replica) + " cores, got " +
                     shapes[i].to_string());
  }
}

}  // namespace embertable::engine
