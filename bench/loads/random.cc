#include "bench/loads/random.h"

#include <cmath>
#include <numeric>

namespace embertable::bench {
namespace {

constexpr double kNearZero = 1e-8;

}  // namespace

Zipf::Zipf(double exponent, std::uint64_t n)
    : exponent_(exponent),
      n_(static_cast<double>(n)),
      integral_first_(integral(1.5) - 1.0),
      integral_last_(integral(n_ + 0.5)),
      accept_(2.0 - inverse_integral(integral(2.5) - std::pow(2.0, -exponent))) {}

double Zipf::integral(double x) const {
  const double log_x = std::log(x);
  const double a = (1 - exponent_) * log_x;
  return (std::fabs(a) > kNearZero ? std::expm1(a) / a : 1 + a / 2) * log_x;
}

double Zipf::inverse_integral(double y) const {
  double a = y * (1 - exponent_);
  if (a < -1) a = -1;
  return std::exp((std::fabs(a) > kNearZero ? std::log1p(a) / a : 1 - a / 2) * y);
}

std::uint64_t Zipf::operator()(Random& random) const {
  for (;;) {
    const double u = integral_last_ + random.fraction() * (integral_first_ - integral_last_);
    const double x = inverse_integral(u);
    double k = std::floor(x + 0.5);
    if (k < 1) k = 1;
    if (k > n_) k = n_;
    if (k - x <= accept_ || u >= integral(k + 0.5) - std::exp(-exponent_ * std::log(k))) {
      return static_cast<std::uint64_t>(k) - 1;
    }
  }
}

Spread::Spread(std::uint64_t n)
    : n_(n), factor_(static_cast<std::uint64_t>(static_cast<double>(n) * 0.6180339887) | 1) {
  while (std::gcd(factor_, n_) != 1) factor_ += 2;
}

}  // namespace embertable::bench
