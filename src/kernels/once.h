#pragma once

#include <cstdint>

#include "base/rows.h"
#include "kernels/level.h"

namespace embertable {

/// Tells rows that a batch names once by two bits for each slot that rows hash to: whether one of
/// its rows was seen, and whether one was seen again. A row whose slot was seen once is named once.
/// One that shares its slot with another row counts as named again.
struct OnceFilter {
  /// [words(bits)], 32 slots each: seen in the lower half, seen again in the upper half.
  std::uint64_t* word = nullptr;
  int bits = 5;  ///< there are 2^bits slots, 5 <= bits <= 31

  static constexpr std::int64_t words(int bits) { return std::int64_t{1} << (bits - 5); }
  std::int64_t words() const noexcept { return words(bits); }
};

inline std::uint32_t once_slot(std::uint32_t row, int bits) noexcept {
  return (row * 0xcc9e2d51u) >> (32 - bits);
}
inline std::uint32_t once_slot(std::uint64_t row, int bits) noexcept {
  return static_cast<std::uint32_t>((row * 0xcc9e2d51d3a2646du) >> (64 - bits));
}

/// Marks a slot as seen, or as seen again.
inline void see_slot(const OnceFilter& filter, std::uint32_t slot) noexcept {
  std::uint64_t& word = filter.word[slot >> 5];
  const std::uint64_t bit = std::uint64_t{1} << (slot & 31);
  word |= bit | (word & bit) << 32;
}
inline bool seen_again(const OnceFilter& filter, std::uint32_t slot) noexcept {
  return ((filter.word[slot >> 5] >> 32 >> (slot & 31)) & 1) != 0;
}

/// Marks the slots of rows.
template <class Index>
struct SeeRows {
  const Index* row = nullptr;  ///< [count]
  std::int64_t count = 0;
  OnceFilter filter;
};
template <class Index>
void see_rows(const SeeRows<Index>& args, SimdLevel level) noexcept;

/// Marks in words of `to` what is marked in those of `from`.
struct JoinFilters {
  const std::uint64_t* from = nullptr;  ///< [count]
  std::uint64_t* to = nullptr;          ///< [count]
  std::int64_t count = 0;
};
void join_filters(const JoinFilters& args, SimdLevel level) noexcept;

/// Writes the bucket of each row, of a row named once `buckets` and the number of its range, and
/// counts them.
template <class Index>
struct SetOnceApart {
  const Index* row = nullptr;  ///< [count]
  std::int64_t count = 0;      ///< < 2^32
  OnceFilter filter;
  std::uint32_t buckets = 0;  ///< with the ranges 2..65536
  RowRanges ranges;
  std::uint16_t* bucket = nullptr;  ///< [count]
  std::uint32_t* counts = nullptr;  ///< [buckets + ranges.count], added to
};
template <class Index>
void set_once_apart(const SetOnceApart<Index>& args, SimdLevel level) noexcept;

}  // namespace embertable
