#pragma once

#include <cstdint>

namespace embertable::bench {

/// A small generator of 64-bit numbers: the same seed gives the same sequence on every machine.
/// Source: Vigna, splitmix64.c.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * kStep + 1) {}

  std::uint64_t next() {
    state_ += kStep;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

  /// Uniform in [0, 1).
  double fraction() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

  /// Uniform in 0 <= value < bound.
  std::uint64_t below(std::uint64_t bound) {
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(next()) * bound) >> 64);
  }

 private:
  static constexpr std::uint64_t kStep = 0x9E3779B97F4A7C15u;
  std::uint64_t state_;
};

/// Ranks 0 <= k < n with probability proportional to (k + 1)^-exponent, by rejection from the
/// inverse of the integral; no table of n entries. exponent > 0, n >= 1. Source: Hörmann,
/// Derflinger, "Rejection-inversion to generate variates from monotone discrete distributions".
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
/// become rows far apart.
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
