#pragma once

#include <cstdint>

#include "base/rows.h"
#include "kernels/level.h"

namespace embertable {

/// row[i] = ids[i]. Id is int32_t or int64_t, Index uint32_t or uint64_t.
template <class Id, class Index>
struct Narrow {
  const Id* ids = nullptr;  ///< [count], any alignment that Id allows
  std::int64_t count = 0;
  std::int64_t limit = 0;  ///< 1 <= limit; < 2^31 where Index is uint32_t
  Index* row = nullptr;    ///< [count]; unspecified where the id is outside of [0, limit)
};
/// Returns whether every id is in [0, limit).
template <class Id, class Index>
bool narrow(const Narrow<Id, Index>& args, SimdLevel level) noexcept;

/// split[i] = splits[i]. Split is int32_t or int64_t.
template <class Split>
struct CopySplits {
  const Split* splits = nullptr;  ///< [outputs + 1]
  std::int64_t outputs = 0;
  std::int64_t* split = nullptr;  ///< [outputs + 1], or null: only checks
};
struct SplitsSeen {
  bool rising = false;    ///< 0 <= splits[i] <= splits[i + 1] throughout
  bool one_each = false;  ///< splits[i + 1] - splits[i] is 1 throughout
};
template <class Split>
SplitsSeen copy_splits(const CopySplits<Split>& args, SimdLevel level) noexcept;

/// bucket[i] = the bucket of a row.
template <class Index>
struct NumberBuckets {
  const Index* row = nullptr;  ///< [count]
  std::int64_t count = 0;
  std::uint32_t buckets = 0;        ///< 1..65536
  std::uint16_t* bucket = nullptr;  ///< [count]
};
template <class Index>
void number_buckets(const NumberBuckets<Index>& args, SimdLevel level) noexcept;

/// counts[b] = rows in bucket b.
template <class Index>
struct CountBuckets {
  const Index* row = nullptr;       ///< [count]
  std::int64_t count = 0;           ///< < 2^32
  std::uint32_t buckets = 0;        ///< >= 1
  std::uint32_t* counts = nullptr;  ///< [buckets], overwritten
};
template <class Index>
void count_buckets(const CountBuckets<Index>& args, SimdLevel level) noexcept;

}  // namespace embertable
