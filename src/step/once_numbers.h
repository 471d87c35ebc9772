#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "base/rows.h"
#include "kernels/once.h"

namespace embertable {

/// Some of a table's rows by entry, and the number of the first of these entries in the table.
template <class Index>
struct NumberedRows {
  const Index* row = nullptr;  ///< [count]
  std::int64_t count = 0;
  std::int64_t first = 0;
};

/// Tells entries of rows that no other entry names from others, for any number of workers that
/// share one array: each entry writes its number into its row's slot; those that do not find their
/// own number there mark the slot; and those that then find it are of rows named once. One that
/// shares its slot with another row counts as named again. Each of the three passes must be over
/// for all entries before the next begins; within one, several threads may call.
class OnceNumbers {
 public:
  static constexpr std::uint32_t kMarked = std::numeric_limits<std::uint32_t>::max();

  OnceNumbers() = default;

  /// `slot` [2^bits], of any content, is borrowed. Requires: fewer than kMarked entries.
  OnceNumbers(std::span<std::uint32_t> slot, int bits) : slot_(slot), bits_(bits) {}

  /// True if there are slots.
  explicit operator bool() const noexcept { return !slot_.empty(); }

  template <class Index>
  void write(const NumberedRows<Index>& rows) const noexcept {
    for (std::int64_t j = 0; j < rows.count; ++j)
      store(slot_of(rows.row[j]), static_cast<std::uint32_t>(rows.first + j));
  }

  template <class Index>
  void mark(const NumberedRows<Index>& rows) const noexcept {
    for (std::int64_t j = 0; j < rows.count; ++j)
      if (std::uint32_t& slot = slot_of(rows.row[j]); load(slot) != rows.first + j)
        store(slot, kMarked);
  }

  /// Writes the bucket of each row, of a row named once `buckets` and the number of its range, to
  /// bucket [count], and adds to counts [buckets + ranges.count].
  template <class Index>
  void set_apart(const NumberedRows<Index>& rows, std::uint32_t buckets, RowRanges ranges,
                 std::uint16_t* bucket, std::uint32_t* counts) const noexcept {
    for (std::int64_t j = 0; j < rows.count; ++j) {
      const bool once = load(slot_of(rows.row[j])) == rows.first + j;
      const std::uint32_t b =
          once ? buckets + ranges.of(rows.row[j]) : bucket_of(rows.row[j], buckets);
      bucket[j] = static_cast<std::uint16_t>(b);
      ++counts[b];
    }
  }

 private:
  template <class Index>
  std::uint32_t& slot_of(Index row) const noexcept {
    return slot_[once_slot(row, bits_)];
  }

  // Several workers write to a slot at once; any of the numbers may stay.
  static std::uint32_t load(const std::uint32_t& slot) noexcept {
    return __atomic_load_n(&slot, __ATOMIC_RELAXED);
  }
  static void store(std::uint32_t& slot, std::uint32_t number) noexcept {
    __atomic_store_n(&slot, number, __ATOMIC_RELAXED);
  }

  std::span<std::uint32_t> slot_;
  int bits_ = 0;
};

}  // namespace embertable
