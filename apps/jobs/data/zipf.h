#pragma once

#include <cstdint>

#include "base/random.h"

namespace embertable::jobs {

/// Draws the numbers 0 .. size - 1, number k with probability proportional to (k + 1)^-exponent.
/// Needs no memory for each number. Source: Hörmann and Derflinger, Rejection-inversion to generate
/// variates from monotone discrete distributions (1996).
class Zipf {
 public:
  /// Requires: size >= 1, exponent >= 0. With exponent 0 all numbers are equally likely.
  Zipf(std::int64_t size, double exponent) noexcept;

  /// Returns a number that depends only on the distribution, the random row and the column.
  std::int64_t operator()(const RandomRow& random, std::uint64_t column) const noexcept;

 private:
  double density(double x) const noexcept;   ///< x^-exponent
  double integral(double x) const noexcept;  ///< integral of the density, from 1
  double inverse_integral(double y) const noexcept;
  std::int64_t size_;
  double exponent_;
  double lowest_, highest_;  ///< bounds of the integrals that are drawn
  double sure_;              ///< every draw at most this far below a number is accepted
};

}  // namespace embertable::jobs
