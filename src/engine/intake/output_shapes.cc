#include "engine/intake/output_shapes.h"

#include <string>

#include "embertable/errors.h"
#include "input/batch_rules.h"
#include "input/feature_reader.h"

namespace embertable::engine {
namespace {

bool shapes_agree(const Shape& stored, const Shape& incoming, bool fewer_on_axis_0) {
  if (!stored.has_rank() || !incoming.has_rank()) return true;
  if (incoming.rank() >= 1 && incoming.rank() <= 2 && stored.rank() > incoming.rank()) return true;
  if (stored.rank() != incoming.rank()) return false;
  for (int axis = 0; axis < stored.rank(); ++axis) {
    const std::int64_t have = stored[axis], asked = incoming[axis];
    const bool fewer = axis == 0 && fewer_on_axis_0 && asked < have;
    if (!fewer && asked != have && have != Shape::kUnknown && asked != Shape::kUnknown)
      return false;
  }
  return true;
}

[[noreturn]] void refuse_shape(const std::string& path, const Shape& stored,
                               const Shape& incoming) {
  throw ValueError(
      "feature '" + path + "': output shape is " + stored.to_string() + ", the input asks for " +
      incoming.to_string() +
      (shapes_agree(stored, incoming, true)
           ? "; variable_batch allows fewer samples, as in a last batch"
       : shapes_agree(incoming, stored, true)
           ? "; a batch has at most the samples of the first one, or of build: give more "
             "samples in parts, or build with more"
           : ""));
}

Shape merged(const Shape& stored, const Shape& incoming) {
  if (stored.rank() != incoming.rank()) return stored;
  std::vector<std::int64_t> dims(stored.dims().begin(), stored.dims().end());
  for (int axis = 0; axis < stored.rank(); ++axis) {
    auto& dim = dims[axis];
    if (dim == Shape::kUnknown) dim = incoming[axis];
  }
  return Shape(std::span<const std::int64_t>(dims));
}

Shape shape_from_input(const FeatureConfig& feature, const Shape& input, const std::string& path) {
  if (input.rank() < 1) {
    throw ValueError("feature '" + path + "': an input shape must have rank >= 1, got " +
                     input.to_string());
  }
  if (input.rank() == 1) return input;
  const bool sequence = feature.max_sequence_length > 0 && !feature.output_shape.has_rank();
  if (sequence && input.rank() == 2 && input[1] != 1)
    return Shape{input[0], feature.max_sequence_length};
  return input.without_last();
}

}  // namespace

std::vector<Shape> configured_shapes(const Nested<FeatureConfig>& features) {
  std::vector<Shape> shapes;
  for (const FeatureConfig& feature : features.leaves()) shapes.push_back(feature.output_shape);
  return shapes;
}

std::vector<Shape> shapes_from_batch_size(const Nested<FeatureConfig>& features,
                                          std::int64_t batch_size) {
  std::vector<Shape> shapes;
  for (const FeatureConfig& feature : features.leaves()) {
    const bool sequence = feature.max_sequence_length > 0 && !feature.output_shape.has_rank();
    shapes.push_back(sequence ? Shape{batch_size, feature.max_sequence_length} : Shape{batch_size});
  }
  return shapes;
}

std::vector<Shape> shapes_from_inputs(const Nested<FeatureConfig>& features,
                                      std::span<const Shape> inputs) {
  if (static_cast<std::int64_t>(inputs.size()) != features.size()) {
    throw ValueError("build: per_replica_input_shapes must have one shape for each of " +
                     std::to_string(features.size()) + " features, got " +
                     std::to_string(inputs.size()));
  }
  std::vector<Shape> shapes;
  for (std::int64_t i = 0; i < features.size(); ++i) {
    shapes.push_back(shape_from_input(features[i], inputs[i], features.path(i)));
  }
  return shapes;
}

void check_shapes(const Nested<FeatureConfig>& features, std::span<const Shape> stored,
                  std::span<const Shape> incoming, bool fewer_on_axis_0) {
  for (std::size_t i = 0; i < incoming.size(); ++i)
    check_shape(features.path(static_cast<std::int64_t>(i)), stored[i], incoming[i],
                fewer_on_axis_0);
}

void check_shape(const std::string& path, const Shape& stored, const Shape& incoming,
                 bool fewer_on_axis_0) {
  if (!shapes_agree(stored, incoming, fewer_on_axis_0)) refuse_shape(path, stored, incoming);
}

std::vector<Shape> resolve_shapes(const Nested<FeatureConfig>& features,
                                  std::span<const Shape> stored, std::span<const Shape> incoming,
                                  bool merge) {
  std::vector<Shape> shapes(stored.begin(), stored.end());
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (!incoming.empty() && !shapes[i].has_rank()) shapes[i] = incoming[i];
    if (!incoming.empty() && merge) shapes[i] = merged(shapes[i], incoming[i]);
    if (!shapes[i].fully_defined()) {
      throw ValueError("feature '" + features.path(static_cast<std::int64_t>(i)) +
                       "': output shape must be known when tables are built, got " +
                       shapes[i].to_string() +
                       "; give it to the feature, to build, or enqueue a batch");
    }
    if (shapes[i].num_elements() > input::kMostEntries) {
      throw ValueError(
          "feature '" + features.path(static_cast<std::int64_t>(i)) +
          "': a feature must have fewer than 2^31 output rows per replica, output shape " +
          shapes[i].to_string() + " has more");
    }
  }
  return shapes;
}

void check_outputs(std::string_view call, const Setup& setup, std::span<const Shape> shapes,
                   std::span<const std::span<float>> out) {
  if (out.size() != shapes.size()) {
    throw ValueError(std::string(call) + ": out must have one span for each of " +
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
