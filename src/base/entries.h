#pragma once

#include <cstdint>

namespace embertable {

/// Number of output rows whose gradients are summed as one piece; a piece also ends with its
/// feature. The value is part of the numerics: another one gives other bits.
inline constexpr std::int64_t kPieceRows = 4096;

constexpr std::int64_t pieces_for(std::int64_t output_rows) {
  return (output_rows + kPieceRows - 1) / kPieceRows;
}

/// Locates the gradients of one piece of output rows and names the core that they come from.
struct GradientPiece {
  const float* base = nullptr;  ///< gradient of output row i of the piece: base + i * stride
  std::int64_t stride = 0;      ///< floats; 0: all rows of the piece share one (zeros)
  std::int32_t core = 0;
};

/// One entry: a row, and the output row that it went to. `out` = piece * kPieceRows + output row
/// within it.
template <class Index>
struct UpdateEntry {
  Index row;
  std::uint32_t out;
};

}  // namespace embertable
