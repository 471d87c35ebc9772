#pragma once

#include <cstdint>

#include "kernels/level.h"

namespace embertable {

/// Computes probability[i] = 1 / (1 + e^-logit[i]) and loss[i] = log(1 + e^logit[i]), which is the
/// loss for label 0; the loss for label 1 is loss[i] - logit[i]. The error is within 1 ulp; NaN
/// gives NaN; every level gives the same bits. Kernel bodies take both for 16 lanes from
/// kernels/logistic/logistic.inl.
struct Logistic {
  const float* logit = nullptr;  ///< [count]
  std::int64_t count = 0;
  float* probability = nullptr;  ///< [count], may be `logit`
  float* loss = nullptr;         ///< [count], or null: not wanted
};

void logistic(const Logistic& args, SimdLevel level) noexcept;

}  // namespace embertable
