#include "tensor/double_power.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace embertable {
namespace {

/// The value high + low, where low is at most half a unit in the last place of high.
struct Pair {
  double high = 0, low = 0;
};

Pair sum_of_ordered(double a, double b) {  // |a| >= |b|, or a is 0
  const double sum = a + b;
  return {sum, b - (sum - a)};
}
Pair sum(double a, double b) {
  const double s = a + b, part = s - a;
  return {s, (a - (s - part)) + (b - part)};
}

/// Returns the 26 upper bits of a double, so that products of halves are exact. Source: Dekker, A
/// floating-point technique for extending the available precision, Numerische Mathematik 18 (1971).
double upper_half(double x) {
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) & 0xfffffffff8000000);
}
Pair product(double a, double b) {
  const double p = a * b;
  const double a1 = upper_half(a), a2 = a - a1, b1 = upper_half(b), b2 = b - b1;
  return {p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2};
}

Pair add(Pair a, Pair b) {
  const Pair s = sum(a.high, b.high);
  return sum_of_ordered(s.high, s.low + (a.low + b.low));
}
Pair multiply(Pair a, Pair b) {
  const Pair p = product(a.high, b.high);
  return sum_of_ordered(p.high, p.low + (a.high * b.low + a.low * b.high));
}
Pair divide(Pair a, Pair b) {
  const double q = a.high / b.high;
  const Pair back = product(q, b.high);
  const double rest = ((a.high - back.high) - back.low) + (a.low - q * b.low);
  return sum_of_ordered(q, rest / b.high);
}

constexpr Pair kLn2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
constexpr Pair kThird = {0x1.5555555555555p-2, 0x1.5555555555555p-56};

/// Returns log(x) of a finite x > 0, with a relative error within 2^-62.
///
/// x = 2^e * m with m in [sqrt(1/2), sqrt(2)); log(m) = 2 * atanh(s) with s = (m-1)/(m+1), by its
/// series up to s^27; the omitted terms are below 2^-70 of the sum.
Pair log_pair(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < 0x1.6a09e667f3bcdp-1) m *= 2, --exponent;
  const Pair s = divide({m - 1, 0}, sum(m, 1));
  const Pair z = multiply(s, s);
  double tail = 0;
  for (int k = 27; k >= 5; k -= 2) tail = 1.0 / k + z.high * tail;
  const Pair inner = add(kThird, product(z.high, tail));
  const Pair twice = {2 * s.high, 2 * s.low};
  const Pair log_m = add(twice, multiply(twice, multiply(z, inner)));
  const double e = exponent;
  const Pair whole = product(e, kLn2.high);
  return add(sum_of_ordered(whole.high, whole.low + e * kLn2.low), log_m);
}

/// Returns e^t for |t| < 800: t = k*ln2 + r with |r| <= ln2/2, e^r by its series up to r^17.
double exp_pair(Pair t) {
  const double k = std::nearbyint(t.high * 0x1.71547652b82fep+0);
  const Pair whole = multiply({k, 0}, kLn2);
  const Pair r = add(t, {-whole.high, -whole.low});
  double tail = 0;  // r/2! + r^2/3! + ..., so that e^r = 1 + r + r * tail
  for (int i = 17; i >= 2; --i) tail = (tail + 1) * (r.high / i);
  const double rest = r.low + r.high * tail + r.low * r.high;
  const Pair one = sum_of_ordered(1, r.high);
  return std::ldexp(one.high + (one.low + rest), static_cast<int>(k));
}

bool is_whole(double y) { return std::trunc(y) == y; }
bool is_odd(double y) { return is_whole(y) && std::fabs(y) < 0x1p53 && std::fmod(y, 2) != 0; }

/// Returns |x|^y if x is 0 or infinite, or y is infinite.
double power_of_limits(double x, double y) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  if (std::isinf(y)) {
    if (x == 1) return 1;
    return (x > 1) == (y > 0) ? kInfinite : 0;
  }
  return (x == 0) == (y > 0) ? 0 : kInfinite;
}

/// Returns x^y for x > 0, both finite.
double power_of_finite(double x, double y) {
  const Pair log = log_pair(x);
  const double about = y * log.high;
  if (about > 720) return std::numeric_limits<double>::infinity();
  if (about < -760) return 0;
  return exp_pair(multiply({y, 0}, log));
}

}  // namespace

double power(double x, double y) noexcept {
  if (y == 0 || x == 1) return 1;
  if (std::isnan(x) || std::isnan(y)) return std::numeric_limits<double>::quiet_NaN();
  const double magnitude = std::fabs(x);
  const bool limits = magnitude == 0 || std::isinf(x) || std::isinf(y);
  if (x < 0 && !limits && !is_whole(y)) return std::numeric_limits<double>::quiet_NaN();
  const double result = limits ? power_of_limits(magnitude, y) : power_of_finite(magnitude, y);
  return std::signbit(x) && is_odd(y) ? -result : result;
}

}  // namespace embertable
