#pragma once

#include <span>

#include "embertable/executor.h"
#include "embertable/variables/tensor.h"

namespace embertable {

/// Returns the dims of both, one after the other.
Shape joined(const Shape& first, const Shape& second);

/// Joins at least one piece along the axis: copies several, and returns a single one as it is,
/// sharing its memory. Requires: dtypes are equal, and shapes except for the axis. Pieces without
/// gaps are copied along axis 0 on the workers of the executor (null: this thread), all others on
/// this thread.
Tensor concatenate(std::span<const Tensor> pieces, int axis, Executor* executor);

}  // namespace embertable
