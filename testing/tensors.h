#pragma once

// For tests: tensors from numbers, and back.

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "embertable/variables/sharded_variable.h"
#include "embertable/variables/tensor.h"

namespace embertable {

using Floats = std::vector<float>;
using Int64s = std::vector<std::int64_t>;

inline Tensor floats(const Floats& values, const Shape& shape) {
  return Tensor::of(std::span<const float>(values), shape);
}
inline Tensor ints(const Int64s& values) {
  return Tensor::of(std::span<const std::int64_t>(values), {std::ssize(values)});
}

/// 0, 1, 2, ... in row-major order.
inline Tensor counting(const Shape& shape) {
  Floats values(shape.num_elements());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return floats(values, shape);
}

template <class T>
std::vector<T> elements(const Tensor& tensor) {
  const Tensor packed = tensor.packed();
  const auto values = packed.values<T>();
  return {values.begin(), values.end()};
}
inline Floats floats_of(const Tensor& tensor) { return elements<float>(tensor); }

/// Components of these rows, whose concatenation is `value`.
inline std::vector<Variable> cut(const Tensor& value, const std::vector<std::int64_t>& sizes) {
  std::vector<Variable> components;
  std::int64_t first = 0;
  for (const std::int64_t rows : sizes) {
    components.emplace_back(value
                                .view(first * value.byte_strides()[0],
                                      value.shape().with_leading(rows), value.byte_strides())
                                .copy());
    first += rows;
  }
  return components;
}
inline ShardedVariable sharded(const Tensor& value, const std::vector<std::int64_t>& sizes) {
  return ShardedVariable(cut(value, sizes));
}

}  // namespace embertable
