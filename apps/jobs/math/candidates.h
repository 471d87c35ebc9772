#pragma once

#include <cstdint>

#include "kernels/level.h"

namespace embertable::jobs {

/// Samples of one query and `width` items, of which the first is the one that was chosen. With the
/// scores y[k] = <query, items[k]> the loss of a sample is
///   of pairs:   sum of log(1 + e^(y[k] - y[0])) over k >= 1,
///   otherwise:  log(1 + e^-y[0]) + sum of log(1 + e^y[k]) over k >= 1,
/// and regularization / 2 * (squares of all that was looked up for it). A query and an item may be
/// a sum of two rows. Arithmetic: binary32; products of vectors summed in 16 lanes, folded by
/// halves; sums over items in their order.
struct Candidates {
  static constexpr std::int64_t kMostWidth = 1024;

  std::int64_t samples = 0;
  std::int64_t dim = 0;
  std::int64_t width = 0;             ///< 2..kMostWidth
  float* query = nullptr;             ///< [samples, dim]
  float* query_side = nullptr;        ///< [samples, dim], or null: none
  const float* side_share = nullptr;  ///< [samples], factors of query_side, or null: all 1
  float* items = nullptr;             ///< [samples, width, dim]
  float* item_side = nullptr;         ///< [samples, width, dim], or null: none
  bool pairs = false;
  float regularization = 0;
};

/// Replaces the rows by the gradients of the loss. Returns the sum of the losses without
/// regularization, in the order of the samples.
double candidate_gradients(const Candidates& block, SimdLevel level) noexcept;

}  // namespace embertable::jobs
