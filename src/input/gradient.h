#pragma once

#include <cstdint>
#include <string>

#include "base/memory.h"
#include "embertable/batch.h"
#include "embertable/shape.h"

namespace embertable {

/// Throws ValueError naming feature, replica (-1: none) and both shapes unless the gradient is
/// absent or has the shape `expected`.
void check_gradient(const Gradient& gradient, const Shape& expected, const std::string& path,
                    std::int32_t replica);

/// Returns the gradient's numbers in place or, if they are doubles or `copy` is set, in `memory`;
/// null if there is no gradient.
const float* floats_of(const Gradient& gradient, bool copy, Arena& memory);

}  // namespace embertable
