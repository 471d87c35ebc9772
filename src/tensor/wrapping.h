#pragma once

#include <cstdint>
#include <type_traits>

namespace embertable {

/// Arithmetic (+ - * /) in which integers wrap instead of being undefined, and halves are rounded
/// once. Requires: no integer is divided by zero.
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
  static T div(T x, T y) { return y == -1 ? sub(0, x) : static_cast<T>(x / y); }
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
