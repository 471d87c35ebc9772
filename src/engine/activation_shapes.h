#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "embertable/shape.h"
#include "engine/schedule/step.h"
#include "engine/setup.h"

namespace embertable::engine {

/// Returns the number of floats in one core's activation of a feature.
std::int64_t activation_floats(const Setup& setup, Step& step, std::int32_t core,
                               std::int64_t feature);

/// Returns S + [dim] of a replica's activation; the activations of its cores are joined on axis 0.
Shape activation_shape(const Setup& setup, Step& step, std::int32_t replica, std::int64_t feature);

/// Throws ValueError unless each of the [replicas * features] activations has a span of the right
/// size.
void check_outputs(const Setup& setup, std::span<const Shape> shapes,
                   std::span<const std::span<float>> out);

}  // namespace embertable::engine
