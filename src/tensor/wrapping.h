#pragma once

#include <cstdint>
#include <type_traits>

#include "base/read_once.h"

namespace embertable {

/// Arithmetic (+ - * /) in which integers wrap instead of being undefined, and halves are rounded
/// once. An integer that is divided by zero gives zero: divisors are refused if one is zero, but
/// another thread may change the caller's after that.
template <class T>
struct Wrapping {
  using Unsigned = std::make_unsigned_t<T>;
  static T add(T x, T y) {
    return static_cast<T>(static_cast<Unsigned>(x) + static_cast<Unsigned>(y));
  }
  static T sub(T x, T y) {
    return static_cast<T>(static_cast<Unsigned>(x) - static_cast<Unsigned>(y));
  }
  static T mul(T x, T y) {
    return static_cast<T>(static_cast<Unsigned>(x) * static_cast<Unsigned>(y));
  }
  static T div(T x, T y) {
    const T by = read_once(y);
    if (by == 0) return 0;
    return by == -1 ? sub(0, x) : static_cast<T>(x / by);
  }
};

template <class T>
struct Rounding {
  static T add(T x, T y) { return x + y; }
  static T sub(T x, T y) { return x - y; }
  static T mul(T x, T y) { return x * y; }
  static T div(T x, T y) { return x / y; }
};
template <>
struct Wrapping<float> : Rounding<float> {};
template <>
struct Wrapping<double> : Rounding<double> {};

}  // namespace embertable
