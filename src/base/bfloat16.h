#pragma once

#include <bit>
#include <cstdint>

#include "base/random.h"

namespace embertable {

/// The upper half of a binary32's bits, as a number.
constexpr float widened(std::uint16_t bits) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// Rounds to the upper half of the bits after adding `carry` < 2^16 to the lower half, which is
/// rounding up where both together reach 2^16. NaN stays NaN, whatever its bits are; infinities and
/// zeros, whose lower half is 0, stay what they are.
constexpr std::uint16_t rounded_with(float x, std::uint32_t carry) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return static_cast<std::uint16_t>(nan ? (bits >> 16) | 0x40u : (bits + carry) >> 16);
}

/// Rounds to nearest even.
constexpr std::uint16_t rounded_to_nearest(float x) noexcept {
  return rounded_with(x, 0x7fffu + (std::bit_cast<std::uint32_t>(x) >> 16 & 1u));
}

/// Returns the largest number with a lower half of 0 that is not above x, and the least one that is
/// not below x. Requires: x is not NaN.
constexpr float half_below(float x) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(x), lower = bits & 0xffffu;
  if (lower == 0) return x;
  const std::uint32_t towards_zero = bits - lower;
  return std::bit_cast<float>((bits >> 31) != 0 ? towards_zero + 0x10000u : towards_zero);
}
constexpr float half_above(float x) noexcept { return -half_below(-x); }

/// Random bits of rows in one step, from which rounding_carry takes those of each column.
class RoundingKeys {
 public:
  /// `stream` is of seed, table and step. Rows are first, first + step and so on, by their numbers
  /// in the whole table.
  constexpr RoundingKeys(std::uint64_t stream, std::uint64_t first, std::uint64_t step) noexcept
      : start_(stream + first * kGoldenRatio), step_(step * kGoldenRatio) {}

  /// Returns the bits of row first + i * step.
  constexpr std::uint64_t at(std::uint64_t i) const noexcept {
    return mix_bits(start_ + i * step_);
  }

 private:
  std::uint64_t start_, step_;
};

/// Returns the bits of one row. `occurrence` counts the steps that it has taken before within this
/// step.
constexpr std::uint64_t rounding_key(std::uint64_t stream, std::uint64_t row,
                                     std::uint64_t occurrence) noexcept {
  return RoundingKeys(stream + occurrence * 0xd1b54a32d192ed03u, row, 0).at(0);
}

/// Constants of rounding_carry, for kernels that compute it on vectors.
inline constexpr std::uint32_t kRoundingStep = 0x9e3779b9u;

/// Returns 16 random bits for a column. One product gives those of two columns that are 16 apart.
constexpr std::uint32_t rounding_carry(std::uint64_t key, std::uint32_t column) noexcept {
  const std::uint32_t pair = column / 32 * 16 + column % 16;
  std::uint32_t x = static_cast<std::uint32_t>(key) + pair * kRoundingStep;
  x ^= x >> 16;
  x *= static_cast<std::uint32_t>(key >> 32) | 1u;
  x ^= x >> 15;
  return column % 32 < 16 ? x & 0xffffu : x >> 16;
}

}  // namespace embertable
