#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "embertable/batch.h"
#include "embertable/shape.h"
#include "engine/setup/setup.h"

namespace embertable::engine {

/// Throws ValueError naming feature, replica (-1: none) and both shapes unless the gradient is
/// absent or has the shape `expected`.
void check_gradient(const Gradient& gradient, const Shape& expected, const std::string& path,
                    std::int32_t replica);

/// Throws ValueError or TypeError unless the tree has the structure of the features.
void check_gradient_structure(const Setup& setup, const Nested<Gradient>& gradients);

/// The same for one tree of each replica; ValueError for another number of trees.
void check_gradient_trees(const Setup& setup, std::span<const Nested<Gradient>> trees);

}  // namespace embertable::engine
