#pragma once

#include "embertable/executor.h"
#include "embertable/variables/tensor.h"

namespace embertable {

/// The product of matrices, those of leading axes broadcast; both of one dtype, numbers but no
/// halves. Each element is the sum of its products from the first to the last, each operation
/// rounded. On the workers of the executor (null: this thread). Throws ValueError naming the
/// shapes.
Tensor matrix_product(const Tensor& x, const Tensor& y, Executor* executor);

}  // namespace embertable
