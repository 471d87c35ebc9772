#pragma once

#include <cstdint>

#include "kernels/level.h"

namespace embertable::jobs {

/// Biased matrix factorisation of a run of samples:
///   prediction = mean + user_bias + item_bias + <user, q>,   q = item + sides[0] + sides[1] + ...
/// The loss of a sample is error^2 / 2 + regularization / 2 * (squares of all that was looked up
/// for it), with error = prediction - label. Arithmetic: binary32; q left to right; the product of
/// two rows summed in 16 lanes, folded by halves.
struct MfBlock {
  std::int64_t samples = 0;
  std::int64_t dim = 0;
  float* user = nullptr;          ///< [samples, dim]
  float* item = nullptr;          ///< [samples, dim]
  float* const* sides = nullptr;  ///< [num_sides], each [samples, dim]
  std::int64_t num_sides = 0;
  float* user_bias = nullptr;    ///< [samples], or null: none
  float* item_bias = nullptr;    ///< [samples], or null: none
  const float* label = nullptr;  ///< [samples]; not read by mf_predict
  float mean = 0;
  float regularization = 0;
};

/// Sets out[s] to the prediction of sample s.
void mf_predict(const MfBlock& block, float* out, SimdLevel level) noexcept;

/// Replaces the rows by the gradients of the loss, and returns the sum of error^2 in the order of
/// the samples.
double mf_gradients(const MfBlock& block, SimdLevel level) noexcept;

}  // namespace embertable::jobs
