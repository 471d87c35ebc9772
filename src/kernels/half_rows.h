#pragma once

#include <cstdint>

#include "kernels/level.h"

namespace embertable {

/// Up to 16 rows of bfloat16 on their way through an update.
struct HalfTile {
  std::uint16_t* const* half;  ///< [rows], `dim` numbers each
  float* const* wide;          ///< [rows], room for `dim` floats each
  const std::uint64_t* key;    ///< [rows], rounding_key of each
  std::int32_t rows;
  std::int32_t dim;
};

/// wide = half.
void widen_rows(const HalfTile& tile, SimdLevel level) noexcept;

/// half = wide, rounded stochastically by the carries of each row's key: see base/bfloat16.h.
void round_rows(const HalfTile& tile, SimdLevel level) noexcept;

}  // namespace embertable
