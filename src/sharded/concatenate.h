#pragma once

#include <span>

#include "embertable/executor.h"
#include "embertable/tensor.h"

namespace embertable {

/// The pieces one behind the other along the axis; one piece alone as it is. At least one; dtypes
/// are equal, and shapes but for the axis. Copied on the workers of the executor (null: this
/// thread).
Tensor concatenate(std::span<const Tensor> pieces, int axis, Executor* executor);

}  // namespace embertable
