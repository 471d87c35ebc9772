#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "embertable/config.h"

namespace embertable::input {

/// Returns the divisor of mean or sqrtn: the sum of the weights, or the square root of the sum of
/// their squares, added left to right from the first term. Requires: count > 0.
template <class Number>  ///< float or double
Number denominator_of(const Number* weight, std::int64_t count, Combiner combiner) {
  if (combiner == Combiner::kMean) {
    Number sum = weight[0];
    for (std::int64_t i = 1; i < count; ++i) sum += weight[i];
    return sum;
  }
  Number sum = weight[0] * weight[0];
  for (std::int64_t i = 1; i < count; ++i) sum += weight[i] * weight[i];
  return std::sqrt(sum);
}

/// Does the same if every weight is 1.
template <class Number = float>
Number denominator_of_ones(std::int64_t count, Combiner combiner) {
  const auto sum = static_cast<Number>(count);
  return combiner == Combiner::kMean ? sum : std::sqrt(sum);
}

/// Returns the divisor of `count` entries with these weights, or null: every weight is 1. That of
/// none is 1.
template <class Number>
Number denominator_of_entries(const Number* weight, std::int64_t count, Combiner combiner) {
  if (count == 0) return 1;
  return weight != nullptr ? denominator_of(weight, count, combiner)
                           : denominator_of_ones<Number>(count, combiner);
}

/// True if some denominator is 0.
inline bool has_zero(std::span<const float> denominators) {
  std::int64_t zeros = 0;
  for (const float by : denominators) zeros += by == 0.0f;
  return zeros > 0;
}

}  // namespace embertable::input
