#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "embertable/config.h"
#include "embertable/shape.h"

namespace embertable::engine {

/// The output shapes of a configuration: unknown rank where a feature has none of its own.
std::vector<Shape> configured_shapes(const Nested<FeatureConfig>& features);

/// The shape that a batch size asks for: [batch], or [batch, L] for sequences without a shape of
/// their own.
std::vector<Shape> shapes_from_batch_size(const Nested<FeatureConfig>& features,
                                          std::int64_t batch_size);

/// The same from the input shapes of one replica. Throws ValueError naming path and shape for an
/// unknown rank or rank 0, or another number of shapes than features.
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
/// the result is not fully defined.
std::vector<Shape> resolve_shapes(const Nested<FeatureConfig>& features,
                                  std::span<const Shape> stored, std::span<const Shape> incoming,
                                  bool merge);

}  // namespace embertable::engine
