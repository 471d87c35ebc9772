#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/entries.h"

namespace embertable {

/// For tests: the gradient of one row as the design promises it, one float at a time. `out` rises;
/// `gain` is parallel to it or empty.
inline std::vector<float> promised_sum(const std::vector<std::uint32_t>& out,
                                       const std::vector<float>& gain,
                                       const std::vector<GradientPiece>& pieces, std::int32_t dim) {
  const std::size_t columns = dim;
  std::vector<std::vector<float>> cores;  // sums of the cores
  std::vector<float> piece;
  const auto add = [&](std::vector<float>& sum, const std::vector<float>& term) {
    for (std::size_t c = 0; c < columns; ++c) sum[c] = sum[c] + term[c];
  };
  std::vector<std::vector<float>> of_core;  // sums of one core's pieces
  const auto end_core = [&] {
    std::vector<float> sum = of_core[0];
    for (std::size_t p = 1; p < of_core.size(); ++p) add(sum, of_core[p]);
    cores.push_back(sum);
    of_core.clear();
  };
  for (std::size_t k = 0; k < out.size(); ++k) {
    const GradientPiece& from = pieces[out[k] / kPieceRows];
    const float* g = from.base + (out[k] % kPieceRows) * from.stride;
    std::vector<float> term(g, g + columns);
    if (!gain.empty())
      for (float& x : term) x = gain[k] * x;
    if (piece.empty())
      piece = term;
    else
      add(piece, term);
    const bool last = k + 1 == out.size();
    if (!last && out[k + 1] / kPieceRows == out[k] / kPieceRows) continue;
    of_core.push_back(piece);
    piece.clear();
    if (last || pieces[out[k + 1] / kPieceRows].core != from.core) end_core();
  }
  std::vector<float> sum = cores[0];
  for (std::size_t r = 1; r < cores.size(); ++r) add(sum, cores[r]);
  return sum;
}

}  // namespace embertable
