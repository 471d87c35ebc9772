#pragma once

#include <cstdint>

namespace embertable {

/// Returns base^exponent, exponent >= 0, by squaring in binary64: every machine gives the same
/// bits.
inline double power(float base, std::int64_t exponent) noexcept {
  double result = 1, square = base;
  for (; exponent != 0; exponent /= 2) {
    if (exponent % 2 != 0) result *= square;
    square *= square;
  }
  return result;
}

/// Corrects moving averages m and v for their start at zero, after t >= 1 updates: m / (1 -
/// beta1^t) over sqrt(v / (1 - beta2^t)) + epsilon is rate(1) * m over sqrt(v) + epsilon(epsilon).
/// In binary64 from binary32 parameters, rounded once.
class BiasCorrection {
 public:
  BiasCorrection(float beta1, float beta2, std::int64_t t) noexcept
      : first_(1 - power(beta1, t)), root_(__builtin_sqrt(1 - power(beta2, t))) {}

  float rate(float learning_rate) const noexcept {
    return static_cast<float>(double{learning_rate} * root_ / first_);
  }
  float epsilon(float epsilon) const noexcept {
    return static_cast<float>(double{epsilon} * root_);
  }

 private:
  double first_;
  double root_;
};

/// Returns the factor by which a decay, multiplied by the rate, shrinks a row.
inline float kept(float learning_rate, float weight_decay) noexcept {
  return static_cast<float>(1 - double{learning_rate} * double{weight_decay});
}

}  // namespace embertable
