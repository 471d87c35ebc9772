#include "engine/activation_shapes.h"

#include <string>

#include "embertable/errors.h"

namespace embertable::engine {

std::int64_t activation_floats(const Setup& setup, Step& step, std::int32_t core,
                               std::int64_t feature) {
  return step.plan(core, feature).outputs * setup.table(feature).config.dim;
}

Shape activation_shape(const Setup& setup, Step& step, std::int32_t replica, std::int64_t feature) {
  const std::int32_t first = replica * setup.cores_per_replica;
  Shape shape = step.reader(first, feature).output_shape();
  for (std::int32_t c = first + 1; c < first + setup.cores_per_replica; ++c)
    shape = shape.with_leading(shape[0] + step.reader(c, feature).output_shape()[0]);
  return shape.append(setup.table(feature).config.dim);
}

void check_outputs(const Setup& setup, std::span<const Shape> shapes,
                   std::span<const std::span<float>> out) {
  if (out.size() != shapes.size()) {
    throw ValueError("dequeue: out must have one span for each of " +
                     std::to_string(shapes.size()) + " activations, got " +
                     std::to_string(out.size()));
  }
  for (std::int64_t i = 0; i < std::ssize(shapes); ++i) {
    if (std::ssize(out[i]) == shapes[i].num_elements()) continue;
    throw ValueError("feature '" + setup.features.path(i % setup.features.size()) +
                     "': the activation has shape " + shapes[i].to_string() + ", out has " +
                     std::to_string(out[i].size()) + " floats");
  }
}

}  // namespace embertable::engine
