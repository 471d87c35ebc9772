#pragma once

#include "embertable/executor.h"
#include "embertable/variables/tensor.h"
#include "embertable/variables/tensor_operators.h"

namespace embertable {

/// The shape that two shapes are broadcast to, as NumPy does. False: they cannot be.
bool broadcast_shape(const Shape& x, const Shape& y, Shape* result);

/// x (op) y of one dtype, not a half and one that the operator takes, each element computed in that
/// dtype; `shape` is what the two are broadcast to. Not kMatMul. No integer is divided by zero or
/// raised to a negative power. On the workers of the executor (null: this thread), as all below.
Tensor elementwise(BinaryOperator what, const Tensor& x, const Tensor& y, const Shape& shape,
                   Executor* executor);

/// Not of a half, and of a dtype that the operator takes.
Tensor elementwise(UnaryOperator what, const Tensor& x, Executor* executor);

/// Every element as one of the other dtype: halves become float32 and back, integers float64.
Tensor converted(const Tensor& x, DType dtype, Executor* executor);

}  // namespace embertable
