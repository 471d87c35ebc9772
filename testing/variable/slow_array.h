#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "embertable/variables/sharded_variable.h"
#include "embertable/variables/tensor.h"

namespace embertable::sharded_test {

using Dims = std::vector<std::int64_t>;

inline Shape shape_of(const Dims& dims) { return Shape(std::span<const std::int64_t>(dims)); }
inline std::int64_t product(const Dims& dims) {
  return std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
}
inline bool whole(DType dtype) {
  return dtype == DType::kInt32 || dtype == DType::kInt64 || dtype == DType::kBool;
}

/// A number of any dtype: `integer` of integers and bool, `real` of the others.
struct Number {
  double real = 0;
  std::int64_t integer = 0;
};

/// Rounds x to the nearest number of `digits` binary digits, none finer than 2^least; infinite from
/// `limit`.
inline double rounded_to(double x, int digits, int least, double limit) {
  if (!std::isfinite(x) || x == 0) return x;
  const int last = std::max(std::ilogb(x) - (digits - 1), least);
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(x, -last)), last);
  return std::fabs(rounded) >= limit ? std::copysign(std::numeric_limits<double>::infinity(), x)
                                     : rounded;
}
inline double rounded(DType dtype, double x) {
  if (dtype == DType::kFloat32) return static_cast<double>(static_cast<float>(x));
  if (dtype == DType::kFloat16) return rounded_to(x, 11, -24, 65520);
  if (dtype == DType::kBFloat16) return rounded_to(x, 8, -133, 0x1p128);
  return x;
}
inline std::int64_t wrapped(DType dtype, __int128 x) {
  return dtype == DType::kInt32 ? static_cast<std::int32_t>(static_cast<std::uint32_t>(x))
                                : static_cast<std::int64_t>(static_cast<std::uint64_t>(x));
}

/// An array as a list of numbers: what operations are compared with, element by element.
struct SlowArray {
  DType dtype = DType::kFloat32;
  Dims dims;
  std::vector<Number> cell;  ///< row-major

  std::int64_t row_cells() const { return product({dims.begin() + 1, dims.end()}); }
};

template <class T>
T stored(const Number& x) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>)
    return T(static_cast<float>(x.real));
  else if constexpr (std::is_floating_point_v<T>)
    return static_cast<T>(x.real);
  else
    return static_cast<T>(x.integer);
}

template <class T>
Tensor tensor_as(const SlowArray& array) {
  const auto values = std::make_unique<T[]>(array.cell.size() + 1);
  for (std::size_t i = 0; i < array.cell.size(); ++i) values[i] = stored<T>(array.cell[i]);
  return Tensor::of<T>(std::span<const T>(values.get(), array.cell.size()), shape_of(array.dims));
}

inline Tensor to_tensor(const SlowArray& array) {
  switch (array.dtype) {
    case DType::kFloat32:
      return tensor_as<float>(array);
    case DType::kFloat64:
      return tensor_as<double>(array);
    case DType::kInt32:
      return tensor_as<std::int32_t>(array);
    case DType::kInt64:
      return tensor_as<std::int64_t>(array);
    case DType::kBool:
      return tensor_as<bool>(array);
    case DType::kBFloat16:
      return tensor_as<BFloat16>(array);
    case DType::kFloat16:
      return tensor_as<Float16>(array);
  }
  return {};
}

template <class T>
T element(const std::byte* at) {
  T x;
  std::memcpy(static_cast<void*>(&x), at, sizeof(T));
  return x;
}

inline Number number_at(DType dtype, const std::byte* at) {
  switch (dtype) {
    case DType::kFloat32:
      return {.real = static_cast<double>(element<float>(at))};
    case DType::kFloat64:
      return {.real = element<double>(at)};
    case DType::kInt32:
      return {.integer = element<std::int32_t>(at)};
    case DType::kInt64:
      return {.integer = element<std::int64_t>(at)};
    case DType::kBool:
      return {.integer = element<std::uint8_t>(at)};
    case DType::kBFloat16:
      return {.real = static_cast<double>(static_cast<float>(element<BFloat16>(at)))};
    case DType::kFloat16:
      return {.real = static_cast<double>(static_cast<float>(element<Float16>(at)))};
  }
  return {};
}

/// Element by element, by the tensor's strides.
inline SlowArray to_array(const Tensor& tensor) {
  SlowArray array = {
      tensor.dtype(), {tensor.shape().dims().begin(), tensor.shape().dims().end()}, {}};
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    std::int64_t rest = i, offset = 0;
    for (int axis = tensor.rank() - 1; axis >= 0; --axis) {
      offset += rest % tensor.shape()[axis] * tensor.byte_strides()[axis];
      rest /= tensor.shape()[axis];
    }
    array.cell.push_back(number_at(tensor.dtype(), tensor.data() + offset));
  }
  return array;
}

inline std::string shown(const SlowArray& array) {
  std::string text = std::string(to_string(array.dtype)) + shape_of(array.dims).to_string();
  for (const Number& x : array.cell)
    text += " " + (whole(array.dtype) ? std::to_string(x.integer) : std::to_string(x.real));
  return text;
}

/// Equal dtypes, dims and numbers; NaN equals NaN. `tolerance` is relative.
inline bool agree(const SlowArray& a, const SlowArray& b, double tolerance = 0) {
  if (a.dtype != b.dtype || a.dims != b.dims || a.cell.size() != b.cell.size()) return false;
  for (std::size_t i = 0; i < a.cell.size(); ++i) {
    const double x = a.cell[i].real, y = b.cell[i].real;
    if (a.cell[i].integer != b.cell[i].integer) return false;
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    if (!(std::fabs(x - y) <= tolerance * std::max(1.0, std::fabs(y)))) return false;
  }
  return true;
}

inline SlowArray rows_of(const SlowArray& array, std::int64_t first, std::int64_t rows) {
  SlowArray part = {array.dtype, array.dims, {}};
  part.dims[0] = rows;
  const auto begin = array.cell.begin() + first * array.row_cells();
  part.cell.assign(begin, begin + rows * array.row_cells());
  return part;
}

/// The same value in components of these sizes.
inline ShardedVariable sharded(const SlowArray& array, const Dims& sizes,
                               ShardedVariableOptions options = {}) {
  std::vector<Variable> components;
  std::int64_t row = 0;
  for (const std::int64_t size : sizes) {
    components.emplace_back(to_tensor(rows_of(array, row, size)),
                            "part_" + std::to_string(components.size()));
    row += size;
  }
  return ShardedVariable(std::move(components), std::move(options));
}

}  // namespace embertable::sharded_test
