#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/memory.h"
#include "embertable/batch.h"
#include "embertable/executor.h"
#include "embertable/shape.h"
#include "engine/schedule/step.h"
#include "engine/setup.h"

namespace embertable::engine {

/// Throws ValueError naming feature, replica (-1: none) and both shapes unless the gradient is
/// absent or has the shape `expected`.
void check_gradient(const Gradient& gradient, const Shape& expected, const std::string& path,
                    std::int32_t replica);

/// Returns the gradient's numbers in place or, if they are doubles or `copy` is set, in `memory`;
/// null if there is no gradient.
const float* floats_of(const Gradient& gradient, bool copy, Arena& memory);

/// Throws ValueError or TypeError unless the tree has the structure of the features.
void check_gradient_structure(const Setup& setup, const Nested<Gradient>& gradients);

/// The same for one tree of each replica; ValueError for another number of trees.
void check_gradient_trees(const Setup& setup, std::span<const Nested<Gradient>> trees);

/// Returns one replica's tree of gradients, whose structure has been checked.
using GradientsOfReplica = FunctionRef<const Nested<Gradient>&(std::int32_t replica)>;

/// Describes where the gradient of one output row of a core goes: "row 7" or "no row".
using ReachedRow =
    FunctionRef<std::string(std::int32_t core, std::int64_t feature, std::int64_t output)>;

/// Checks the gradients of a step and the rates of update `number`, and keeps both in the step.
/// Gradients stay in the caller's memory unless `copy` is set or they are doubles. Changes nothing
/// else. Throws as Embedding::apply_gradients.
void accept_gradients(const Setup& setup, Step& step, std::int64_t number,
                      GradientsOfReplica gradients, bool copy, ReachedRow reached_row);

}  // namespace embertable::engine
