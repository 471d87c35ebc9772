#pragma once

#include "embertable/executor.h"
#include "embertable/variables/tensor.h"

namespace embertable {

/// Returns the product of matrices; leading axes are broadcast. Requires: both have one numeric
/// dtype, which is not a half. Each element is the sum of its products from the first to the last,
/// each operation rounded. Runs on the workers of the executor (null: this thread). Throws
/// ValueError naming the shapes.
Tensor matrix_product(const Tensor& x, const Tensor& y, Executor* executor);

}  // namespace embertable
