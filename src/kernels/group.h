#pragma once

#include <cstdint>

#include "base/entries.h"
#include "base/rows.h"
#include "kernels/level.h"
#include "kernels/update.h"

namespace embertable {

/// Memory in which up to n entries are grouped, and which holds the result, without row numbers.
/// Every array but `table` has kSlack spare elements, because vectors are accessed whole. `group`
/// keeps hash, table, first, count, start and loser as numbers of 16 bits where they suffice.
struct GroupArrays {
  static constexpr std::int64_t kSlack = 64;

  std::uint32_t* hash = nullptr;   ///< [n]
  std::uint32_t* table = nullptr;  ///< [table_size(n)]
  std::uint32_t* first = nullptr;  ///< [n], and so on
  std::uint32_t* count = nullptr;
  std::uint32_t* start = nullptr;
  std::uint32_t* loser = nullptr;

  std::uint32_t* single_out = nullptr;
  float* single_gain = nullptr;
  std::uint32_t* multi_start = nullptr;
  std::uint32_t* order = nullptr;
  float* order_gain = nullptr;

  static std::int64_t table_size(std::int64_t n) {
    std::int64_t size = 1024;
    while (size < 2 * n) size *= 2;
    return size;
  }
};

/// Adds row numbers as wide as an Index.
template <class Index>
struct GroupMemory : GroupArrays {
  Index* single_row = nullptr;
  Index* multi_row = nullptr;
};

/// Groups entries by row. Rows named once keep the order of their entries, the others the order of
/// their first entry.
template <class Index>
struct Group {
  const Index* row = nullptr;          ///< [count], of the shard
  const std::uint32_t* out = nullptr;  ///< parallel, rising within a row
  const float* gain = nullptr;         ///< parallel, or null
  std::int64_t count = 0;              ///< <= 2^31
  RowBlock rows;                       ///< prefetched
  GroupMemory<Index> memory;
  std::int64_t prefetched_bytes = 256 << 10;  ///< rows and slots prefetched, at most
  bool to_level2 = false;                     ///< into the second-level cache, not the first
};
template <class Index>
GroupedEntries<Index> group(const Group<Index>& args, SimdLevel level) noexcept;

/// Does the first part of `group` only: sets memory.first[i] to the first entry with the row of
/// entry i. Reads and writes of the memory no more than hash, table, first and loser; of the other
/// arguments only `row` and `count` matter.
template <class Index>
void find_first(const Group<Index>& args, SimdLevel level) noexcept;

/// Splits entries into two arrays: row[i], out[i] = entry[i].
template <class Index>
struct TakeApart {
  const UpdateEntry<Index>* entry = nullptr;
  std::int64_t count = 0;
  Index* row = nullptr;
  std::uint32_t* out = nullptr;
};
template <class Index>
void take_apart(const TakeApart<Index>& args, SimdLevel level) noexcept;

}  // namespace embertable
