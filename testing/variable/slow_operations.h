#pragma once

#include <algorithm>
#include <cmath>
#include <utility>

#include "embertable/variables/tensor_operators.h"
#include "testing/variable/slow_array.h"

namespace embertable::sharded_test {

/// What numbers of a dtype are computed in before they are rounded: nothing is wrong with double
/// for + - * / of shorter ones.
inline Number real(DType dtype, double x) { return {.real = rounded(dtype, x)}; }
inline Number integer(DType dtype, __int128 x) { return {.integer = wrapped(dtype, x)}; }

inline std::int64_t floor_division(std::int64_t x, std::int64_t y) {
  const auto quotient = static_cast<std::int64_t>(std::floor(static_cast<long double>(x) / y));
  return quotient;
}

inline __int128 integer_power(DType dtype, std::int64_t x, std::int64_t y) {
  __int128 result = 1;
  for (; y > 0; --y) result = wrapped(dtype, result * x);
  return result;
}

/// One scatter of v onto x.
inline Number scattered(ScatterOperation op, DType dtype, const Number& x, const Number& v) {
  const bool w = whole(dtype);
  const auto either = [&](bool take_v) { return take_v ? v : x; };
  const bool less = w ? v.integer < x.integer : v.real < x.real || std::isnan(v.real);
  const bool more = w ? v.integer > x.integer : v.real > x.real || std::isnan(v.real);
  switch (op) {
    case ScatterOperation::kAdd:
      return w ? integer(dtype, __int128{x.integer} + v.integer) : real(dtype, x.real + v.real);
    case ScatterOperation::kSub:
      return w ? integer(dtype, __int128{x.integer} - v.integer) : real(dtype, x.real - v.real);
    case ScatterOperation::kMul:
      return w ? integer(dtype, __int128{x.integer} * v.integer) : real(dtype, x.real * v.real);
    case ScatterOperation::kDiv:
      return w ? integer(dtype, __int128{x.integer} / v.integer) : real(dtype, x.real / v.real);
    case ScatterOperation::kMin:
      return either(less);
    case ScatterOperation::kMax:
      return either(more);
    case ScatterOperation::kUpdate:
      return v;
  }
  return x;
}

inline DType result_dtype(BinaryOperator op, DType dtype) {
  if (op >= BinaryOperator::kLess && op <= BinaryOperator::kNotEqual) return DType::kBool;
  return op == BinaryOperator::kTrueDiv && whole(dtype) ? DType::kFloat64 : dtype;
}

inline bool taken(BinaryOperator op, DType dtype) {
  const bool logic =
      op == BinaryOperator::kAnd || op == BinaryOperator::kOr || op == BinaryOperator::kXor;
  const bool equality = op == BinaryOperator::kEqual || op == BinaryOperator::kNotEqual;
  if (dtype == DType::kBool) return logic || equality;
  return whole(dtype) || !logic;
}

/// x (op) y of two numbers, but for kMatMul.
inline Number operated(BinaryOperator op, DType dtype, const Number& x, const Number& y) {
  using Op = BinaryOperator;
  const bool w = whole(dtype);
  const std::int64_t a = x.integer, b = y.integer;
  const double r = x.real, s = y.real;
  switch (op) {
    case Op::kAdd:
      return scattered(ScatterOperation::kAdd, dtype, x, y);
    case Op::kSub:
      return scattered(ScatterOperation::kSub, dtype, x, y);
    case Op::kMul:
      return scattered(ScatterOperation::kMul, dtype, x, y);
    case Op::kTrueDiv:
      return w ? Number{.real = static_cast<double>(a) / static_cast<double>(b)}
               : real(dtype, r / s);
    case Op::kFloorDiv:
      return w ? integer(dtype, floor_division(a, b))
               : real(dtype, std::floor(rounded(dtype, r / s)));
    case Op::kMod: {
      if (w) return integer(dtype, __int128{a} - __int128{floor_division(a, b)} * b);
      const double rest = std::fmod(r, s);
      return real(dtype, rest != 0 && (rest < 0) != (s < 0) ? rest + s : rest);
    }
    case Op::kPow:
      return w ? integer(dtype, integer_power(dtype, a, b)) : real(dtype, std::pow(r, s));
    case Op::kLess:
      return {.integer = w ? a < b : r < s};
    case Op::kLessEqual:
      return {.integer = w ? a <= b : r <= s};
    case Op::kGreater:
      return {.integer = w ? a > b : r > s};
    case Op::kGreaterEqual:
      return {.integer = w ? a >= b : r >= s};
    case Op::kEqual:
      return {.integer = w ? a == b : r == s};
    case Op::kNotEqual:
      return {.integer = w ? a != b : r != s};
    case Op::kAnd:
      return {.integer = a & b};
    case Op::kOr:
      return {.integer = a | b};
    case Op::kXor:
      return {.integer = a ^ b};
    case Op::kMatMul:
      break;
  }
  return {};
}

inline Number negated(UnaryOperator op, DType dtype, const Number& x) {
  if (!whole(dtype)) return {.real = op == UnaryOperator::kAbs ? std::fabs(x.real) : -x.real};
  if (op == UnaryOperator::kInvert)
    return {.integer = dtype == DType::kBool ? 1 - x.integer : ~x.integer};
  const bool negate = op == UnaryOperator::kNegate || x.integer < 0;
  return integer(dtype, negate ? -__int128{x.integer} : __int128{x.integer});
}

/// Where the element of a result at `at` is in a side that was broadcast to it.
inline std::size_t broadcast_cell(const Dims& side, const Dims& at) {
  std::int64_t cell = 0;
  for (std::size_t k = 0; k < side.size(); ++k) {
    const std::int64_t i = at[at.size() - side.size() + k];
    cell = cell * side[k] + (side[k] == 1 ? 0 : i);
  }
  return static_cast<std::size_t>(cell);
}

inline Dims broadcast_dims(const Dims& x, const Dims& y) {
  Dims dims(std::max(x.size(), y.size()), 1);
  for (std::size_t back = 1; back <= dims.size(); ++back) {
    const std::int64_t a = back <= x.size() ? x[x.size() - back] : 1;
    const std::int64_t b = back <= y.size() ? y[y.size() - back] : 1;
    dims[dims.size() - back] = a == 1 ? b : a;
  }
  return dims;
}

/// Calls each(at) for all positions, row-major.
template <class Each>
void for_each_position(const Dims& dims, const Each& each) {
  for (std::int64_t i = 0; i < product(dims); ++i) {
    Dims at(dims.size());
    std::int64_t rest = i;
    for (std::size_t k = dims.size(); k-- > 0; rest /= dims[k]) at[k] = rest % dims[k];
    each(at);
  }
}

inline SlowArray slow_binary(BinaryOperator op, const SlowArray& x, const SlowArray& y) {
  SlowArray result = {result_dtype(op, x.dtype), broadcast_dims(x.dims, y.dims), {}};
  for_each_position(result.dims, [&](const Dims& at) {
    result.cell.push_back(operated(op, x.dtype, x.cell[broadcast_cell(x.dims, at)],
                                   y.cell[broadcast_cell(y.dims, at)]));
  });
  return result;
}

/// Sums from the first product to the last; halves as float32, rounded at the end.
inline SlowArray slow_matmul(const SlowArray& x, const SlowArray& y) {
  const DType dtype = x.dtype;
  const bool half = dtype == DType::kFloat16 || dtype == DType::kBFloat16;
  const DType inner = half ? DType::kFloat32 : dtype;
  const auto batch = [](const Dims& dims) { return Dims(dims.begin(), dims.end() - 2); };
  const std::int64_t rows = x.dims[x.dims.size() - 2], terms = x.dims.back();
  const std::int64_t columns = y.dims.back();
  SlowArray result = {dtype, broadcast_dims(batch(x.dims), batch(y.dims)), {}};
  result.dims.push_back(rows);
  result.dims.push_back(columns);
  for_each_position(result.dims, [&](const Dims& at) {
    const Dims head(at.begin(), at.end() - 2);
    const auto of_x = static_cast<std::int64_t>(broadcast_cell(batch(x.dims), head)) * rows * terms;
    const auto of_y =
        static_cast<std::int64_t>(broadcast_cell(batch(y.dims), head)) * terms * columns;
    Number sum;
    for (std::int64_t k = 0; k < terms; ++k) {
      const Number& a = x.cell[of_x + at[at.size() - 2] * terms + k];
      const Number& b = y.cell[of_y + k * columns + at.back()];
      const Number product = scattered(ScatterOperation::kMul, inner, a, b);
      sum = k == 0 ? product : scattered(ScatterOperation::kAdd, inner, sum, product);
    }
    result.cell.push_back(whole(dtype) ? sum : real(dtype, sum.real));
  });
  return result;
}

}  // namespace embertable::sharded_test
