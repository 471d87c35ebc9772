#pragma once

#include <cstdint>

#include "kernels/level.h"

namespace embertable {

/// Combines a number x of a row with a value v: x + v, x - v, x * v, x / v, the lesser, the greater
/// (NaN if either is NaN), or v.
enum class RowOperation : std::uint8_t { kAdd, kSub, kMul, kDiv, kMin, kMax, kUpdate };

/// row[i] = row[i] (op) value[i], i rising: if a row is named again, the later value meets the
/// result of the earlier one.
struct ScatterRows {
  float* table = nullptr;  ///< row r starts at table + r * stride
  std::int64_t stride = 0;
  std::int64_t dim = 0;                 ///< floats per row; nothing beyond is read or written
  const std::uint64_t* row = nullptr;   ///< [count]
  const std::uint64_t* from = nullptr;  ///< [count], or null: value i is values + i * dim
  const float* values = nullptr;        ///< value i is values + from[i] * dim
  std::int64_t count = 0;
  std::int64_t soon = 0;  ///< entries after these that will be changed next: they are prefetched
};
void scatter_rows(RowOperation operation, const ScatterRows& args, SimdLevel level) noexcept;

}  // namespace embertable
