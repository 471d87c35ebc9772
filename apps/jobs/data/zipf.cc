#include "apps/jobs/data/zipf.h"

#include <algorithm>
#include <cmath>

#include "base/math.h"

namespace embertable::jobs {
namespace {

constexpr double kNearOne = 1e-9;  ///< exponents for which the integral is the logarithm

}  // namespace

Zipf::Zipf(std::int64_t size, double exponent) noexcept : size_(size), exponent_(exponent) {
  lowest_ = integral(1.5) - 1;
  highest_ = integral(static_cast<double>(size) + 0.5);
  sure_ = 2 - inverse_integral(integral(2.5) - density(2));
}

std::int64_t Zipf::operator()(const RandomRow& random, std::uint64_t column) const noexcept {
  for (std::uint64_t draw = 0;; ++draw) {
    const double u = highest_ + uniform_double(random.bits(column, draw)) * (lowest_ - highest_);
    const double x = inverse_integral(u);
    const double k = std::clamp(std::floor(x + 0.5), 1.0, static_cast<double>(size_));
    if (k - x <= sure_ || u >= integral(k + 0.5) - density(k))
      return static_cast<std::int64_t>(k) - 1;
  }
}

double Zipf::density(double x) const noexcept { return math::pow(x, -exponent_); }

double Zipf::integral(double x) const noexcept {
  const double power = 1 - exponent_;
  return std::abs(power) < kNearOne ? math::log(x) : (math::pow(x, power) - 1) / power;
}

double Zipf::inverse_integral(double y) const noexcept {
  const double power = 1 - exponent_;
  if (std::abs(power) < kNearOne) return math::exp(y);
  return math::pow(std::max(0.0, 1 + y * power), 1 / power);
}

}  // namespace embertable::jobs
