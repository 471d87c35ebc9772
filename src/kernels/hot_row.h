#pragma once

#include <cstdint>

#include "base/entries.h"
#include "kernels/level.h"

namespace embertable {

/// Entries of one bucket, in canonical order.
template <class Index>
struct EntryList {
  const UpdateEntry<Index>* entry = nullptr;  ///< [count]; or null, and there is
  const Index* row = nullptr;                 ///< [count], of entries whose out is first_out + i
  std::uint32_t first_out = 0;
  const float* gain = nullptr;  ///< [count], or null: all 1
  std::int64_t count = 0;

  Index row_at(std::int64_t i) const { return entry != nullptr ? entry[i].row : row[i]; }
  std::uint32_t out_at(std::int64_t i) const {
    return entry != nullptr ? entry[i].out : first_out + static_cast<std::uint32_t>(i);
  }
  EntryList part(std::int64_t first, std::int64_t last) const {
    return {entry != nullptr ? entry + first : nullptr, row != nullptr ? row + first : nullptr,
            first_out + static_cast<std::uint32_t>(first), gain != nullptr ? gain + first : nullptr,
            last - first};
  }
};

/// Sums the gradients of one row over some columns, among the entries of one piece, in their order
/// from the first term on.
template <class Index>
struct HotRowSum {
  EntryList<Index> entries;
  Index row = 0;
  GradientPiece piece;
  std::int64_t column = 0;
  std::int64_t columns = 0;
  float* sum = nullptr;  ///< [columns], written if there is such an entry
};
/// Returns the number of such entries.
template <class Index>
std::int64_t sum_hot_row(const HotRowSum<Index>& args, SimdLevel level) noexcept;

/// Copies all entries but those of a few rows, in their order.
template <class Index>
struct LeaveOut {
  EntryList<Index> entries;
  const Index* left_out = nullptr;  ///< [rows]
  std::int32_t rows = 0;
  Index* row = nullptr;          ///< [kept entries + 1], as the next two
  std::uint32_t* out = nullptr;  ///< parallel
  float* gain = nullptr;         ///< parallel, where the entries have gains
};
/// Returns the number of entries that are kept.
template <class Index>
std::int64_t leave_out(const LeaveOut<Index>& args, SimdLevel level) noexcept;

}  // namespace embertable
