#pragma once

#include <span>

#include "embertable/executor.h"
#include "embertable/variables/tensor.h"

namespace embertable {

/// The pieces one behind the other along the axis, copied; one piece alone as it is, sharing its
/// memory. At least one; dtypes are equal, and shapes but for the axis. Pieces without gaps are
/// copied along axis 0 on the workers of the executor (null: this thread), all others on this
/// thread.
Tensor concatenate(std::span<const Tensor> pieces, int axis, Executor* executor);

}  // namespace embertable
