#pragma once

#include <cstdint>

#include "kernels/level.h"

namespace embertable {

/// A table of few rows, to be updated where every output row has one entry.
struct SmallTable {
  const std::uint32_t* row = nullptr;  ///< [outputs]
  std::int64_t outputs = 0;
  const float* gradient = nullptr;  ///< output row i's is at gradient + i * stride
  std::int64_t stride = 0;
  std::int64_t dim = 0;
  float* sums = nullptr;            ///< [rows, padded(dim)]: row r's gradients are added to sums[r]
  std::uint8_t* touched = nullptr;  ///< [rows]: 1 for each row that an entry names
};

/// Sets sums[i] = -0, which adds nothing: -0 + x is x, bit for bit. [count], count a multiple of
/// 16.
void clear_sums(float* sums, std::int64_t count, SimdLevel level) noexcept;

/// Computes sums[row[i]] = sums[row[i]] + gradient[i] for each table, i rising. Tables of one dim
/// are taken in pairs, so that additions to one row wait for each other less.
void accumulate(const SmallTable* tables, std::int32_t count, SimdLevel level) noexcept;

}  // namespace embertable
