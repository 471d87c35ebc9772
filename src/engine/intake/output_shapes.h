#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "embertable/config.h"
#include "embertable/shape.h"
#include "engine/setup/setup.h"

namespace embertable::engine {

/// Returns the output shapes of a configuration; unknown rank for a feature without one.
std::vector<Shape> configured_shapes(const Nested<FeatureConfig>& features);

/// Returns the shapes for a batch size: [batch], or [batch, L] for sequences without a shape of
/// their own.
std::vector<Shape> shapes_from_batch_size(const Nested<FeatureConfig>& features,
                                          std::int64_t batch_size);

/// Does the same for the input shapes of one replica. Throws ValueError naming path and shape for
/// an unknown rank or rank 0, or if there are not as many shapes as features.
std::vector<Shape> shapes_from_inputs(const Nested<FeatureConfig>& features,
                                      std::span<const Shape> inputs);

/// Throws ValueError naming path and both shapes where `incoming` contradicts `stored`. An incoming
/// shape of rank 1 or 2 below the stored rank is left to the check of the data. `fewer_on_axis_0`:
/// incoming may be smaller there.
void check_shapes(const Nested<FeatureConfig>& features, std::span<const Shape> stored,
                  std::span<const Shape> incoming, bool fewer_on_axis_0);

void check_shape(const std::string& path, const Shape& stored, const Shape& incoming,
                 bool fewer_on_axis_0);

/// Stored shapes of known rank win unchanged (with `merge`, their unknown dims are completed);
/// others are taken from `incoming` (may be empty). Throws ValueError naming path and shape where
/// the result is not fully defined or has 2^31 output rows and more.
std::vector<Shape> resolve_shapes(const Nested<FeatureConfig>& features,
                                  std::span<const Shape> stored, std::span<const Shape> incoming,
                                  bool merge);

/// Throws ValueError unless there is a span of the right size for each of [replicas * features]
/// activations.
void check_outputs(std::string_view call, const Setup& setup, std::span<const Shape> shapes,
                   std::span<const std::span<float>> out);

}  // namespace embertable::engine
