#pragma once

#include "embertable/executor.h"
#include "embertable/variables/tensor.h"
#include "embertable/variables/tensor_operators.h"

namespace embertable {

/// Sets `result` to the shape to which two shapes are broadcast, as NumPy does. Returns false if
/// they cannot be.
bool broadcast_shape(const Shape& x, const Shape& y, Shape* result);

/// Returns x (op) y, each element computed in their dtype. `shape` is what the two are broadcast
/// to. Requires: x and y have one dtype, which is not a half and which the operator takes; the
/// operator is not kMatMul; no integer is divided by zero or raised to a negative power. Runs on
/// the workers of the executor (null: this thread), as the functions below.
Tensor elementwise(BinaryOperator what, const Tensor& x, const Tensor& y, const Shape& shape,
                   Executor* executor);

/// Requires: x is not of a half dtype, and of one that the operator takes.
Tensor elementwise(UnaryOperator what, const Tensor& x, Executor* executor);

/// Converts every element: halves to float32 and back, integers to float64.
Tensor converted(const Tensor& x, DType dtype, Executor* executor);

}  // namespace embertable
