#pragma once

#include <cstdint>

#include "kernels/level.h"

namespace embertable::jobs {

/// Skip-gram with negative sampling of a run of neighbouring words of a text. Each of them is a
/// centre, whose contexts are its neighbours; all centres share the run's negatives. The loss is
///   sum over pairs of softplus(-<centre, context>)
///   + sum over centres of (its contexts) * negative_weight * sum of softplus(<centre, negative>)
/// with softplus(y) = log(1 + exp(y)). Arithmetic: binary32, scalar products in 16 lanes folded by
/// halves.
struct SkipgramRun {
  static constexpr std::int64_t kMostCentres = 64;
  static constexpr std::int64_t kMostNegatives = 64;
  static constexpr std::int64_t kMostWindow = 32;

  std::int64_t dim = 0;
  std::int64_t centres = 0;
  std::int64_t window = 0;
  std::int64_t negatives = 0;
  float* centre = nullptr;    ///< [centres, dim]
  float* context = nullptr;   ///< [centres + 2 * window, dim]; row i + window is centre i's word
  float* negative = nullptr;  ///< [negatives, dim]

  /// Number of contexts of each centre before and after it, at most `window`. If both are 0, there
  /// is no word.
  const std::uint8_t* before = nullptr;  ///< [centres]
  const std::uint8_t* after = nullptr;   ///< [centres]
  float negative_weight = 1;             ///< negatives of a pair / negatives of the run
};

/// Returns the loss.
double skipgram_loss(const SkipgramRun& run, SimdLevel level) noexcept;

/// Returns the loss, and replaces the rows by its gradients.
double skipgram_gradients(const SkipgramRun& run, SimdLevel level) noexcept;

}  // namespace embertable::jobs
