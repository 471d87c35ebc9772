#pragma once

#include <cstdint>

#include "kernels/level.h"

namespace embertable {

/// probability[i] = 1 / (1 + e^-logit[i]) and loss[i] = log(1 + e^logit[i]): the loss where the
/// label is 0; where it is 1, it is loss[i] - logit[i]. Within 1 ulp, of a NaN a NaN; the same bits
/// at every level. Bodies of kernels take both for 16 lanes from kernels/logistic.inl.
struct Logistic {
  const float* logit = nullptr;  ///< [count]
  std::int64_t count = 0;
  float* probability = nullptr;  ///< [count], may be `logit`
  float* loss = nullptr;         ///< [count], or null: not wanted
};

void logistic(const Logistic& args, SimdLevel level) noexcept;

}  // namespace embertable
