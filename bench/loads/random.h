#pragma once

#include <concepts>
#include <cstdint>

#include "base/random.h"

namespace embertable::bench {

/// A sequence of random numbers; the same seed gives the same sequence on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * kGoldenRatio + 1) {}

  std::uint64_t next() { return mix_bits(state_ += kGoldenRatio); }

  /// Uniform in [0, 1).
  double fraction() { return uniform_double(next()); }

  /// Uniform in [0, bound). Requires: bound >= 1.
  template <std::integral Integer>
  Integer below(Integer bound) {
    return static_cast<Integer>(uniform_below(next(), static_cast<std::uint64_t>(bound)));
  }

 private:
  std::uint64_t state_;
};

/// Draws ranks 0 <= k < n with probability proportional to (k + 1)^-exponent, by rejection from the
/// inverse of the integral, without a table of n entries. Requires: exponent > 0, n >= 1. Source:
/// Hörmann, Derflinger, "Rejection-inversion to generate variates from monotone discrete
/// distributions".
class Zipf {
 public:
  Zipf(double exponent, std::uint64_t n);
  std::uint64_t operator()(Random& random) const;

 private:
  double integral(double x) const;
  double inverse_integral(double y) const;

  double exponent_;
  double n_;
  double integral_first_;
  double integral_last_;
  double accept_;
};

/// A fixed permutation of 0 <= k < n that keeps no neighbours together, so that frequent ranks
/// become rows far apart. python/frameworks/workload_ids.py has the same one.
class Spread {
 public:
  explicit Spread(std::uint64_t n);
  std::uint64_t operator()(std::uint64_t k) const {
    return static_cast<std::uint64_t>(static_cast<unsigned __int128>(k) * factor_ % n_);
  }

 private:
  std::uint64_t n_;
  std::uint64_t factor_;
};

}  // namespace embertable::bench
