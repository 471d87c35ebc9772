#include "tensor/elementwise.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <type_traits>

#include "base/read_once.h"
#include "tensor/double_power.h"
#include "tensor/element_type.h"
#include "tensor/ranges.h"
#include "tensor/wrapping.h"

namespace embertable {
namespace {

using Op = BinaryOperator;

template <class T>
T integer_power(T x, T y) {
  T result = 1;
  for (; y > 0; y /= 2) {
    if (y % 2 == 1) result = Wrapping<T>::mul(result, x);
    x = Wrapping<T>::mul(x, x);
  }
  return result;
}

template <class T>
T floor_quotient(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::floor(x / y);
  } else {
    const T by = read_once(y);
    const T quotient = Wrapping<T>::div(x, by);
    const bool whole = by == 0 || by == -1 || x % by == 0;
    return !whole && (x < 0) != (by < 0) ? quotient - 1 : quotient;
  }
}

/// Returns a result with the sign of y.
template <class T>
T floor_remainder(T x, T y) {
  const T by = read_once(y);
  T rest = 0;
  if constexpr (std::is_floating_point_v<T>)
    rest = std::fmod(x, by);
  else if (by != -1 && by != 0)
    rest = x % by;
  return rest != 0 && (rest < 0) != (by < 0) ? rest + by : rest;
}

template <Op kOp, class T>
auto applied(T x, T y) {
  if constexpr (kOp == Op::kAdd) return Wrapping<T>::add(x, y);
  if constexpr (kOp == Op::kSub) return Wrapping<T>::sub(x, y);
  if constexpr (kOp == Op::kMul) return Wrapping<T>::mul(x, y);
  if constexpr (kOp == Op::kTrueDiv) return Wrapping<T>::div(x, y);
  if constexpr (kOp == Op::kFloorDiv) return floor_quotient(x, y);
  if constexpr (kOp == Op::kMod) return floor_remainder(x, y);
  if constexpr (kOp == Op::kPow) {
    if constexpr (std::is_floating_point_v<T>)
      return static_cast<T>(power(static_cast<double>(x), static_cast<double>(y)));
    else
      return integer_power(x, y);
  }
  if constexpr (kOp == Op::kLess) return x < y;
  if constexpr (kOp == Op::kLessEqual) return x <= y;
  if constexpr (kOp == Op::kGreater) return x > y;
  if constexpr (kOp == Op::kGreaterEqual) return x >= y;
  if constexpr (kOp == Op::kEqual) return x == y;
  if constexpr (kOp == Op::kNotEqual) return x != y;
  if constexpr (kOp == Op::kAnd) return static_cast<T>(x & y);
  if constexpr (kOp == Op::kOr) return static_cast<T>(x | y);
  if constexpr (kOp == Op::kXor) return static_cast<T>(x ^ y);
}

template <Op kOp, class T>
constexpr bool computes() {
  constexpr bool kLogic = kOp == Op::kAnd || kOp == Op::kOr || kOp == Op::kXor;
  constexpr bool kEquality = kOp == Op::kEqual || kOp == Op::kNotEqual;
  if (kOp == Op::kMatMul) return false;
  if (std::is_same_v<T, bool>) return kLogic || kEquality;
  return std::is_integral_v<T> ? kOp != Op::kTrueDiv : !kLogic;
}

/// Reads elements from memory, where a bool of other programs may be any byte.
template <class T>
using Stored = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
template <class T>
const Stored<T>* stored(const Tensor& tensor) {
  return reinterpret_cast<const Stored<T>*>(tensor.data());
}
template <class T>
T loaded(Stored<T> element) {
  return static_cast<T>(element);
}

/// Computes one line of the result. Elements of a side that is broadcast along it do not move.
template <Op kOp, class T>
void run_line(const void* from_x, bool x_moves, const void* from_y, bool y_moves, void* to,
              std::int64_t count) {
  const auto of = [](Stored<T> a, Stored<T> b) { return applied<kOp>(loaded<T>(a), loaded<T>(b)); };
  const auto* x = static_cast<const Stored<T>*>(from_x);
  const auto* y = static_cast<const Stored<T>*>(from_y);
  auto* out = static_cast<decltype(applied<kOp>(T{}, T{}))*>(to);
  if (x_moves && y_moves)
    for (std::int64_t i = 0; i < count; ++i) out[i] = of(x[i], y[i]);
  else if (x_moves)
    for (std::int64_t i = 0; i < count; ++i) out[i] = of(x[i], *y);
  else if (y_moves)
    for (std::int64_t i = 0; i < count; ++i) out[i] = of(*x, y[i]);
  else
    for (std::int64_t i = 0; i < count; ++i) out[i] = of(*x, *y);
}

/// An operator on elements of one type.
struct TypedOperator {
  void (*run_line)(const void* x, bool x_moves, const void* y, bool y_moves, void* out,
                   std::int64_t count);
  DType result;
  std::int64_t element_bytes, result_bytes;
};

/// How a result is traversed: axes from the last to the first, joined if both sides have the same
/// layout.
struct BroadcastWalk {
  struct Axis {
    std::int64_t size;
    std::int64_t x, y;  ///< elements between two of them; 0 where the side is broadcast
  };
  std::array<Axis, Shape::kMaxRank> axis{};
  std::size_t axes = 0;

  BroadcastWalk(const Shape& shape, const Shape& x, const Shape& y) {
    std::int64_t x_step = 1, y_step = 1;
    for (int back = 1; back <= shape.rank(); ++back) {
      const std::int64_t size = shape[shape.rank() - back];
      const std::int64_t of_x = back <= x.rank() ? x[x.rank() - back] : 1;
      const std::int64_t of_y = back <= y.rank() ? y[y.rank() - back] : 1;
      add({size, of_x == 1 ? 0 : x_step, of_y == 1 ? 0 : y_step});
      x_step *= of_x;
      y_step *= of_y;
    }
    if (axes == 0) axis[axes++] = {1, 0, 0};
  }

  void add(const Axis& next) {
    if (next.size == 1) return;
    if (axes > 0) {
      Axis& last = axis[axes - 1];
      if (next.x == last.x * last.size && next.y == last.y * last.size) {
        last.size *= next.size;
        return;
      }
    }
    axis[axes++] = next;
  }
};

/// Position of a walk: an element of the result, and elements of both sides.
struct BroadcastPlace {
  const BroadcastWalk& walk;
  std::int64_t x = 0, y = 0;  ///< where the line begins on the sides
  std::int64_t within = 0;    ///< elements of the line that are done
  std::array<std::int64_t, Shape::kMaxRank> at{};

  BroadcastPlace(const BroadcastWalk& way, std::int64_t element) : walk(way) {
    within = element % walk.axis[0].size;
    element /= walk.axis[0].size;
    for (std::size_t k = 1; k < walk.axes; ++k) {
      at[k] = element % walk.axis[k].size;
      element /= walk.axis[k].size;
      x += at[k] * walk.axis[k].x;
      y += at[k] * walk.axis[k].y;
    }
  }

  void next_line() {  // counts like an odometer
    within = 0;
    for (std::size_t k = 1; k < walk.axes; ++k) {
      const BroadcastWalk::Axis& axis = walk.axis[k];
      const bool turns = ++at[k] == axis.size;
      const std::int64_t steps = turns ? 1 - axis.size : 1;
      x += steps * axis.x;
      y += steps * axis.y;
      if (!turns) return;
      at[k] = 0;
    }
  }
};

/// Computes elements first to last of the result.
void run_range(const TypedOperator& how, const BroadcastWalk& walk, const std::byte* x,
               const std::byte* y, std::byte* out, std::int64_t first, std::int64_t last) {
  const BroadcastWalk::Axis& line = walk.axis[0];
  for (BroadcastPlace at(walk, first); first < last; at.next_line()) {
    const std::int64_t count = std::min(line.size - at.within, last - first);
    how.run_line(x + (at.x + at.within * line.x) * how.element_bytes, line.x != 0,
                 y + (at.y + at.within * line.y) * how.element_bytes, line.y != 0,
                 out + first * how.result_bytes, count);
    first += count;
  }
}

Tensor run(const TypedOperator& how, const Tensor& x, const Tensor& y, const Shape& shape,
           Executor* executor) {
  Tensor result(how.result, shape);
  if (shape.num_elements() == 0) return result;
  const BroadcastWalk walk(shape, x.shape(), y.shape());
  const std::byte *from_x = x.data(), *from_y = y.data();
  std::byte* out = result.mutable_bytes().data();
  for_ranges(result.size(), how.element_bytes, executor,
             [&](std::int64_t first, std::int64_t last) {
               run_range(how, walk, from_x, from_y, out, first, last);
             });
  return result;
}

template <Op kOp>
Tensor run_dtype(const Tensor& x, const Tensor& y, const Shape& shape, Executor* executor) {
  return with_element_type(x.dtype(), [&](auto element) -> Tensor {
    using T = typename decltype(element)::Type;
    if constexpr ((std::is_arithmetic_v<T>)&&computes<kOp, T>()) {
      using R = decltype(applied<kOp>(T{}, T{}));
      return run({run_line<kOp, T>, dtype_of<R>(), sizeof(T), sizeof(R)}, x, y, shape, executor);
    }
    EMBERTABLE_ASSERT(false);
  });
}

using RunOperator = Tensor (*)(const Tensor&, const Tensor&, const Shape&, Executor*);
constexpr RunOperator kRun[] = {
    run_dtype<Op::kAdd>,      run_dtype<Op::kSub>,          run_dtype<Op::kMul>,
    run_dtype<Op::kTrueDiv>,  run_dtype<Op::kFloorDiv>,     run_dtype<Op::kMod>,
    run_dtype<Op::kPow>,      run_dtype<Op::kLess>,         run_dtype<Op::kLessEqual>,
    run_dtype<Op::kGreater>,  run_dtype<Op::kGreaterEqual>, run_dtype<Op::kEqual>,
    run_dtype<Op::kNotEqual>, run_dtype<Op::kAnd>,          run_dtype<Op::kOr>,
    run_dtype<Op::kXor>};

template <class T>
T applied(UnaryOperator what, T x) {
  if constexpr (std::is_same_v<T, bool>) {
    return !x;
  } else if constexpr (std::is_integral_v<T>) {
    const bool negate = what == UnaryOperator::kNegate || x < 0;
    return what == UnaryOperator::kInvert ? static_cast<T>(~x)
           : negate                       ? Wrapping<T>::sub(0, x)
                                          : x;
  } else {
    return what == UnaryOperator::kAbs ? std::fabs(x) : -x;
  }
}

/// Sets to[i] = make(from[i]).
template <class To, class From, class Make>
void map(const Tensor& from, Tensor& to, Executor* executor, const Make& make) {
  const Stored<From>* source = stored<From>(from);
  To* target = to.mutable_values<To>().data();
  for_ranges(from.size(), sizeof(From), executor, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) target[i] = make(loaded<From>(source[i]));
  });
}

template <class To, class From>
void convert(const Tensor& from, Tensor& to, Executor* executor) {
  map<To, From>(from, to, executor, [](From x) { return static_cast<To>(x); });
}

}  // namespace

bool broadcast_shape(const Shape& x, const Shape& y, Shape* result) {
  const int rank = std::max(x.rank(), y.rank());
  std::array<std::int64_t, Shape::kMaxRank> dims{};
  for (int back = 1; back <= rank; ++back) {
    const std::int64_t of_x = back <= x.rank() ? x[x.rank() - back] : 1;
    const std::int64_t of_y = back <= y.rank() ? y[y.rank() - back] : 1;
    if (of_x != of_y && of_x != 1 && of_y != 1) return false;
    dims[rank - back] = of_x == 1 ? of_y : of_x;
  }
  *result = Shape(std::span(dims).first(rank));
  return true;
}

Tensor elementwise(BinaryOperator what, const Tensor& x, const Tensor& y, const Shape& shape,
                   Executor* executor) {
  return kRun[static_cast<std::size_t>(what)](x.packed(), y.packed(), shape, executor);
}

Tensor elementwise(UnaryOperator what, const Tensor& x, Executor* executor) {
  const Tensor packed = x.packed();
  Tensor result(x.dtype(), x.shape());
  with_element_type(x.dtype(), [&](auto element) {
    using T = typename decltype(element)::Type;
    if constexpr (std::is_arithmetic_v<T>)
      map<T, T>(packed, result, executor, [what](T value) { return applied(what, value); });
  });
  return result;
}

Tensor converted(const Tensor& x, DType dtype, Executor* executor) {
  const Tensor packed = x.packed();
  Tensor result(dtype, x.shape());
  if (x.dtype() == DType::kFloat16) convert<float, Float16>(packed, result, executor);
  if (x.dtype() == DType::kBFloat16) convert<float, BFloat16>(packed, result, executor);
  if (dtype == DType::kFloat16) convert<Float16, float>(packed, result, executor);
  if (dtype == DType::kBFloat16) convert<BFloat16, float>(packed, result, executor);
  if (x.dtype() == DType::kInt32) convert<double, std::int32_t>(packed, result, executor);
  if (x.dtype() == DType::kInt64) convert<double, std::int64_t>(packed, result, executor);
  return result;
}

}  // namespace embertable
