#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace embertable::slow {

/// Where the result of a binary32 computation must lie: from `low` to `high`, every operation on
/// the way rounded once, to nearest. The ends are doubles, whose own roundings `kHalfUlp` covers.
struct Range {
  double low = 0;
  double high = 0;

  Range() = default;
  Range(double exact) : low(exact), high(exact) {}  // NOLINT: a number is a range
  Range(double from, double to) : low(from), high(to) {}

  double magnitude() const { return std::max(std::abs(low), std::abs(high)); }
  bool is(double exact) const { return low == exact && high == exact; }
  bool contains(double x) const { return low <= x && x <= high; }
};

/// Half an ulp of binary32, relative, and a little more.
constexpr double kHalfUlp = 0x1p-24 * (1 + 0x1p-20);

/// What rounding may add where numbers are subnormal: the least number above zero.
constexpr double kLeast = 0x1p-149;

/// One rounding of anything between the ends. What binary32 can hold is not rounded.
inline Range rounded(double low, double high) {
  if (low == high && static_cast<double>(static_cast<float>(low)) == low) return low;
  const double slack = std::max(std::abs(low), std::abs(high)) * kHalfUlp + kLeast;
  return {low - slack, high + slack};
}

inline Range operator-(const Range& x) { return {-x.high, -x.low}; }

/// Adding 0, and multiplying or dividing by 1, is exact.
inline Range operator+(const Range& a, const Range& b) {
  if (a.is(0)) return b;
  return b.is(0) ? a : rounded(a.low + b.low, a.high + b.high);
}
inline Range operator-(const Range& a, const Range& b) { return a + -b; }
inline Range operator*(const Range& a, const Range& b) {
  if (a.is(1) || b.is(0)) return b;
  if (b.is(1) || a.is(0)) return a;
  const auto [low, high] =
      std::minmax({a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high});
  return rounded(low, high);
}

/// Zero must lie outside b.
inline Range operator/(const Range& a, const Range& b) {
  if (b.is(1) || a.is(0)) return a;
  const auto [low, high] =
      std::minmax({a.low / b.low, a.low / b.high, a.high / b.low, a.high / b.high});
  return rounded(low, high);
}

/// Root of a range that is never below zero.
inline Range root(const Range& x) {
  const Range r = rounded(std::sqrt(std::max(x.low, 0.0)), std::sqrt(std::max(x.high, 0.0)));
  return {std::max(r.low, 0.0), r.high};
}
inline Range square(const Range& x) {
  const double least = x.contains(0) ? 0 : std::min(std::abs(x.low), std::abs(x.high));
  const Range r = rounded(least * least, x.magnitude() * x.magnitude());
  return {std::max(r.low, 0.0), r.high};
}
inline Range at_least(const Range& x, double low) {
  return {std::max(x.low, low), std::max(x.high, low)};
}
inline Range at_most(const Range& x, double high) {
  return {std::min(x.low, high), std::min(x.high, high)};
}

/// A sum of any number of terms, added in whatever order: n terms are n - 1 roundings, of partial
/// sums that are no larger than all terms without their signs. Small multiples of 1/64, as weights
/// are here, add up exactly.
class Sum {
 public:
  void add(const Range& term) {
    exact_.low += term.low;
    exact_.high += term.high;
    magnitude_ += term.magnitude();
    exactly_ = exactly_ && term.low == term.high && std::floor(term.low * 64) == term.low * 64;
    ++terms_;
  }
  bool empty() const { return terms_ == 0; }
  Range total() const {
    if (terms_ <= 1 || (exactly_ && magnitude_ * 64 < 0x1p24)) return exact_;
    const double roundings = static_cast<double>(terms_ - 1) * kHalfUlp;
    const double slack = roundings / (1 - roundings) * magnitude_;
    return {exact_.low - slack, exact_.high + slack};
  }

 private:
  Range exact_;
  double magnitude_ = 0;
  bool exactly_ = true;
  std::int64_t terms_ = 0;
};

}  // namespace embertable::slow
