#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "embertable/row_type.h"

namespace embertable::checkpoint {

/// Bytes of the scale and the offset at the end of a row of int8.
inline constexpr std::int64_t kScaleBytes = 8;

/// Returns the dtype and the number of elements that a row of `dim` numbers has in a file: "F32",
/// "BF16", or for int8 "U8" with the scale and the offset as binary32 behind the numbers.
std::string_view stored_dtype(RowType type) noexcept;
std::int64_t stored_columns(RowType type, std::int64_t dim) noexcept;
std::int64_t stored_row_bytes(RowType type, std::int64_t dim) noexcept;

/// Converts rows of `dim` numbers to the bytes of a file; bfloat16 rounds to nearest even, int8 to
/// the nearest of 256 numbers from the least to the largest of the row. Requires: sizes agree; rows
/// of int8 are finite, and so is the distance between their numbers.
void store_rows(RowType type, std::int64_t dim, std::span<const float> rows, std::byte* to);

/// Reverses store_rows: bfloat16 is widened, a byte b of int8 is b * scale + offset.
void unstore_rows(RowType type, std::int64_t dim, const std::byte* from, std::span<float> rows);

}  // namespace embertable::checkpoint
