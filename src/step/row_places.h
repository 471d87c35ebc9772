#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace embertable {

/// Numbers distinct rows of a table from 0, in rising order. Takes 2 bits for each row of the
/// table.
class RowPlaces {
 public:
  /// Takes memory for tables of up to so many rows, so that `clear` does not.
  void reserve(std::int64_t table_rows);

  /// Forgets all rows. `table_rows`: rows of the table.
  void clear(std::int64_t table_rows);
  void add(std::uint64_t row) { bits_[row / 64] |= std::uint64_t{1} << (row % 64); }

  /// Numbers the rows that were added. Returns how many they are.
  std::int64_t number();

  /// Writes the rows in their order.
  void list(std::span<std::uint64_t> rows) const;

  /// Requires: the row was added before `number`.
  std::uint32_t operator[](std::uint64_t row) const {
    const std::uint64_t before = bits_[row / 64] & ((std::uint64_t{1} << (row % 64)) - 1);
    return before_[row / 64] + static_cast<std::uint32_t>(std::popcount(before));
  }

  std::int64_t bytes() const noexcept {
    return static_cast<std::int64_t>(bits_.capacity() * sizeof(bits_[0]) +
                                     before_.capacity() * sizeof(before_[0]));
  }

 private:
  std::vector<std::uint64_t> bits_;
  std::vector<std::uint32_t> before_;  ///< rows before those of a word
};

}  // namespace embertable
