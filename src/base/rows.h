#pragma once

#include <cstddef>
#include <cstdint>

#include "embertable/row_type.h"

namespace embertable {

/// Maximum number of slots that a rule keeps beside a row.
inline constexpr int kMaxSlots = 7;

/// Returns the bytes of an element of a row: a float, a half or a byte.
constexpr std::int64_t bytes_per_element(RowType type) noexcept {
  return type == RowType::kFloat32 ? 4 : type == RowType::kBfloat16 ? 2 : 1;
}

/// Where the random bits come from with which rows are rounded: see base/bfloat16.h. Row r of a
/// shard is row first + r * step of the table.
struct RowRounding {
  std::uint64_t stream = 0;  ///< depends on seed and table
  std::int64_t first = 0;
  std::int64_t step = 1;
};

/// Rows of a shard with the optimizer's slots, by address, because kernels know no tables.
/// Borrowed. A full-size slot is part of the row's record, `[row | slot | ...]`; a row-wise slot is
/// an array of its own.
struct RowBlock {
  float* row = nullptr;         ///< row r starts at row + r * stride; null if rows are halves
  std::int64_t stride = 0;      ///< elements: floats or halves
  float* slot[kMaxSlots] = {};  ///< slot s of row r starts at slot[s] + r * slot_stride[s]
  std::int64_t slot_stride[kMaxSlots] = {};
  std::int32_t slots = 0;
  std::int32_t dim = 0;  ///< floats per row; nothing beyond is read or written
  std::int64_t rows = 0;

  RowType type = RowType::kFloat32;
  std::uint16_t* half = nullptr;  ///< bfloat16: row r starts at half + r * stride
  RowRounding rounding = {};      ///< where rows are halves

  bool is_half() const noexcept { return type == RowType::kBfloat16; }

  /// Returns the first byte of the rows.
  void* memory() const noexcept { return is_half() ? static_cast<void*>(half) : row; }
  std::int64_t element_bytes() const noexcept { return bytes_per_element(type); }
};

/// Row numbers of a shard: uint32 where it has < 2^31 rows, else uint64. Borrowed. The top bit
/// marks a row of the receive buffer instead of the table.
struct RowNumbers {
  void* data = nullptr;
  std::int64_t size = 0;
  bool wide = false;

  template <class Index>
  Index* as() const {
    return static_cast<Index*>(data);
  }
};

template <class Index>
inline constexpr Index kReceivedBit = Index{1} << (sizeof(Index) * 8 - 1);

/// Assigns rows to buckets by hash. 16 neighbouring rows stay together, so that workers share no
/// cache line of a row-wise slot.
inline std::uint32_t mix(std::uint32_t x) noexcept {
  x ^= x >> 15;
  x *= 0x2c1b3c6du;
  x ^= x >> 12;
  x *= 0x297a2d39u;
  return x ^ (x >> 15);
}
inline std::uint32_t bucket_of(std::uint64_t row, std::uint32_t buckets) noexcept {
  const auto group = static_cast<std::uint32_t>((row >> 4) ^ (row >> 36));
  return static_cast<std::uint32_t>((std::uint64_t{mix(group)} * buckets) >> 32);
}
inline std::uint32_t bucket_of(std::uint32_t row, std::uint32_t buckets) noexcept {
  return static_cast<std::uint32_t>((std::uint64_t{mix(row >> 4)} * buckets) >> 32);
}

/// The rows of a shard in ranges of 2^shift neighbours.
struct RowRanges {
  std::int32_t count = 0;
  std::int32_t shift = 0;

  /// True if there are ranges.
  explicit operator bool() const noexcept { return count > 0; }

  /// Cuts `rows` rows into at most `most` ranges, as short as powers of two allow; 0: into none.
  static RowRanges of_rows(std::int64_t rows, std::int32_t most) noexcept {
    if (most == 0) return {};
    std::int32_t shift = 0;
    while (rows > std::int64_t{most} << shift) ++shift;
    return {static_cast<std::int32_t>((rows + (std::int64_t{1} << shift) - 1) >> shift), shift};
  }

  /// Returns the number of a row's range, 0 <= number < count.
  template <class Index>
  std::uint32_t of(Index row) const noexcept {
    return static_cast<std::uint32_t>(row >> shift);
  }
};

}  // namespace embertable
