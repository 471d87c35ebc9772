#pragma once

#include <cstdint>
#include <string>

#include "base/memory.h"
#include "embertable/batch.h"
#include "embertable/shape.h"

namespace embertable {

/// Throws ValueError naming feature, replica (-1: none) and both shapes unless the gradient is none
/// or that of an activation of shape `expected`.
void check_gradient(const Gradient& gradient, const Shape& expected, const std::string& path,
                    std::int32_t replica);

/// Its numbers, as they are or, where they are doubles or `copy` asks for it, in `memory`; null for
/// none.
const float* floats_of(const Gradient& gradient, bool copy, Arena& memory);

}  // namespace embertable
