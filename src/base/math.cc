#include "base/math.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace embertable::math {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// x + kRounder has no fraction bits: its low bits are x, rounded.
constexpr double kRounder = 0x1.8p52;
double nearest_integer(double x) { return (x + kRounder) - kRounder; }

// ln 2 in two parts; the first ends in enough zeros for exact multiples up to 2^20.
constexpr double kLn2High = 0x1.62e42feep-1;
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
constexpr double kLog2E = 0x1.71547652b82fep0;

/// Returns 2^k. Requires: -1022 <= k <= 1023.
double power_of_two(std::int64_t k) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(k + 1023) << 52);
}

/// Returns c[0] + c[1] x + ... by Horner's rule.
template <int kTerms>
double polynomial(const double (&c)[kTerms], double x) {
  double sum = c[kTerms - 1];
  for (int i = kTerms - 2; i >= 0; --i) sum = sum * x + c[i];
  return sum;
}

/// Bound of |p - 1/2| for the quantiles that one rational function computes.
constexpr double kCentral = 0.425;

double central_quantile(double q) {
  static constexpr double kOver[] = {3.3871328727963666080e0, 1.3314166789178437745e2,
                                     1.9715909503065514427e3, 1.3731693765509461125e4,
                                     4.5921953931549871457e4, 6.7265770927008700853e4,
                                     3.3430575583588128105e4, 2.5090809287301226727e3};
  static constexpr double kUnder[] = {1.0,
                                      4.2313330701600911252e1,
                                      6.8718700749205790830e2,
                                      5.3941960214247511077e3,
                                      2.1213794301586595867e4,
                                      3.9307895800092710610e4,
                                      2.8729085735721942674e4,
                                      5.2264952788528545610e3};
  const double r = 0.180625 - q * q;
  return polynomial(kOver, r) * q / polynomial(kUnder, r);
}

/// Returns the absolute value of the quantile beyond which the probability is p < 0.075.
double tail_quantile(double p) {
  static constexpr double kOver[] = {1.42343711074968357734e0,  4.63033784615654529590e0,
                                     5.76949722146069140550e0,  3.64784832476320460504e0,
                                     1.27045825245236838258e0,  2.41780725177450611770e-1,
                                     2.27238449892691845833e-2, 7.74545014278341407640e-4};
  static constexpr double kUnder[] = {1.0,
                                      2.05319162663775882187e0,
                                      1.67638483018380384940e0,
                                      6.89767334985100004550e-1,
                                      1.48103976427480074590e-1,
                                      1.51986665636164571966e-2,
                                      5.47593808499534494600e-4,
                                      1.05075007164441684324e-9};
  static constexpr double kFarOver[] = {6.65790464350110377720e0,  5.46378491116411436990e0,
                                        1.78482653991729133580e0,  2.96560571828504891230e-1,
                                        2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                        2.71155556874348757815e-5, 2.01033439929228813265e-7};
  static constexpr double kFarUnder[] = {1.0,
                                         5.99832206555887937690e-1,
                                         1.36929880922735805310e-1,
                                         1.48753612908506148525e-2,
                                         7.86869131145613259100e-4,
                                         1.84631831751005468180e-5,
                                         1.42151175831644588870e-7,
                                         2.04426310338993978564e-15};
  if (p == 0) return kInfinity;
  if (!(p > 0)) return kNan;
  const double r = std::sqrt(-log(p));
  return r <= 5 ? polynomial(kOver, r - 1.6) / polynomial(kUnder, r - 1.6)
                : polynomial(kFarOver, r - 5) / polynomial(kFarUnder, r - 5);
}

double outer_quantile(double p) { return p < 0.5 ? -tail_quantile(p) : tail_quantile(1 - p); }

}  // namespace

double exp(double x) noexcept {
  static constexpr double kTerms[] = {1.0 / 2,        1.0 / 6,         1.0 / 24,
                                      1.0 / 120,      1.0 / 720,       1.0 / 5040,
                                      1.0 / 40320,    1.0 / 362880,    1.0 / 3628800,
                                      1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800.0};
  if (x != x) return x;
  if (x > 710) return kInfinity;
  if (x < -746) return 0;
  const double k = nearest_integer(x * kLog2E);
  const double r = (x - k * kLn2High) - k * kLn2Low;
  const double value = 1 + (r + r * r * polynomial(kTerms, r));
  const auto half = static_cast<std::int64_t>(k) / 2;  // 2^k itself may be out of range
  return value * power_of_two(half) * power_of_two(static_cast<std::int64_t>(k) - half);
}

double log(double x) noexcept {
  // atanh(s) = s + s^3/3 + s^5/5 + ...; the terms from s^2/3 on, doubled
  static constexpr double kTerms[] = {2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11, 2.0 / 13,
                                      2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21, 2.0 / 23};
  if (x == 0) return -kInfinity;
  if (!(x > 0)) return kNan;
  if (x == kInfinity) return x;
  const bool subnormal = x < 0x1p-1022;
  // m = x / 2^k in [sqrt(1/2), sqrt(2))
  constexpr std::uint64_t kRootHalf = 0x3fe6a09e667f3bcd;
  const auto bits = std::bit_cast<std::uint64_t>(subnormal ? x * 0x1p54 : x) - kRootHalf;
  const auto exponent = static_cast<std::int64_t>(bits) >> 52;
  const double m = std::bit_cast<double>((bits & 0x000fffffffffffff) + kRootHalf);
  const auto k = static_cast<double>(exponent - (subnormal ? 54 : 0));
  const double f = m - 1;
  const double s = f / (2 + f);
  const double z = s * s;
  const double half_square = 0.5 * f * f;
  const double rest = s * (half_square + z * polynomial(kTerms, z));
  return k * kLn2High - ((half_square - (rest + k * kLn2Low)) - f);
}

double log1p(double x) noexcept {
  const double sum = 1 + x;
  if (sum == 1 || sum == kInfinity) return x;
  if (!(sum > 0)) return log(sum);
  return log(sum) + (x - (sum - 1)) / sum;  // the last term corrects the rounding of the sum
}

double pow(double x, double y) noexcept {
  if (y == 0 || x == 1) return 1;
  return exp(y * log(x));
}

double normal_quantile(double p) noexcept {
  const double q = p - 0.5;
  return std::fabs(q) <= kCentral ? central_quantile(q) : outer_quantile(p);
}

void normal_quantiles(const double* p, double* out, int n) noexcept {
  for (int i = 0; i < n; ++i) out[i] = central_quantile(p[i] - 0.5);
  for (int i = 0; i < n; ++i) {
    if (!(std::fabs(p[i] - 0.5) <= kCentral)) out[i] = outer_quantile(p[i]);
  }
}

}  // namespace embertable::math
