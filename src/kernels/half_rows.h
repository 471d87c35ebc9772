#pragma once

#include <cstdint>
#include <limits>

#include "kernels/level.h"

namespace embertable {

/// Up to 16 rows of bfloat16 on their way through an update.
struct HalfTile {
  std::uint16_t* const* half;  ///< [rows], `dim` numbers each
  float* const* wide;          ///< [rows], room for `dim` floats each
  const std::uint64_t* key;    ///< [rows], rounding_key of each
  std::int32_t rows;
  std::int32_t dim;

  /// Limits of what is rounded, which lies between them.
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();
};

/// wide = half.
void widen_rows(const HalfTile& tile, SimdLevel level) noexcept;

/// half = wide, rounded stochastically by the carries of each row's key: see base/bfloat16.h. Where
/// the rounded number is beyond a limit, it is the nearest one that is not.
void round_rows(const HalfTile& tile, SimdLevel level) noexcept;

}  // namespace embertable
