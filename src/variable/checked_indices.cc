#include "variable/checked_indices.h"

#include <algorithm>
#include <atomic>
#include <limits>

#include "base/read_once.h"
#include "kernels/level.h"
#include "kernels/narrow.h"
#include "tensor/ranges.h"

namespace embertable::sharded {
namespace {

/// Returns false if an index is not in [0, rows).
template <class Id>
bool all_in(const Id* index, const Id* end, std::int64_t rows) {
  const std::uint64_t last = static_cast<std::uint64_t>(rows) - 1;
  std::uint64_t signs = 0;  // sign bits of each index, and of how far it is below the last row
  for (; index != end; ++index) {
    const auto i = static_cast<std::uint64_t>(std::int64_t{*index});
    signs |= i | (last - i);
  }
  return static_cast<std::int64_t>(signs) >= 0;
}

/// Looks for an index outside of the rows in [first, count), in which a check has found one.
template <class Id>
IndexOutside outside_from(const Id* ids, std::int64_t first, std::int64_t count,
                          std::int64_t rows) {
  for (std::int64_t i = first; i < count; ++i) {
    const std::int64_t index = read_once(ids[i]);
    if (index < 0 || index >= rows) return {i, index};
  }
  return {first, read_once(ids[first])};
}

/// Calls check(first, last) on ranges of the indices, which returns false if one of them is outside
/// of the rows. Returns where the first of those is.
template <class Id, class Check>
std::optional<IndexOutside> first_outside(const Id* ids, std::int64_t count, std::int64_t rows,
                                          Executor* executor, Check check) {
  constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  std::atomic<std::int64_t> failed = kNone;  // the least place at which a failed range begins
  for_ranges(count, sizeof(Id), executor, [&](std::int64_t first, std::int64_t last) {
    if (check(first, last)) return;
    std::int64_t least = failed;
    while (first < least && !failed.compare_exchange_weak(least, first)) {
    }
  });
  if (failed == kNone) return std::nullopt;
  return outside_from(ids, failed, count, rows);
}

template <class Id>
std::optional<IndexOutside> find_outside_of(const Id* ids, std::int64_t count, std::int64_t rows,
                                            Executor* executor) {
  return first_outside(ids, count, rows, executor, [&](std::int64_t first, std::int64_t last) {
    return all_in(ids + first, ids + last, rows);
  });
}

template <class Index, class Id>
CopiedIndices copy_as(const Id* ids, std::int64_t count, std::int64_t rows, Executor* executor,
                      Arena& scratch) {
  Index* const copy = scratch.take<Index>(count).data();
  const SimdLevel level = simd_level();
  const auto check = [&](std::int64_t first, std::int64_t last) {
    return narrow(
        Narrow<Id, Index>{
            .ids = ids + first, .count = last - first, .limit = rows, .row = copy + first},
        level);
  };
  return {{reinterpret_cast<const std::byte*>(copy), count, sizeof(Index) == sizeof(std::int64_t)},
          first_outside(ids, count, rows, executor, check)};
}

template <class Id>
CopiedIndices copy_of(const Id* ids, std::int64_t count, std::int64_t rows, Executor* executor,
                      Arena& scratch) {
  return rows <= std::numeric_limits<std::int32_t>::max()
             ? copy_as<std::uint32_t>(ids, count, rows, executor, scratch)
             : copy_as<std::uint64_t>(ids, count, rows, executor, scratch);
}

/// Calls call(ids) with a pointer of the type that the indices have.
template <class Call>
auto with_ids(const RowIndices& indices, Call call) {
  return indices.wide ? call(reinterpret_cast<const std::int64_t*>(indices.data))
                      : call(reinterpret_cast<const std::int32_t*>(indices.data));
}

}  // namespace

std::optional<IndexOutside> find_outside(const RowIndices& indices, std::int64_t rows,
                                         Executor* executor) {
  if (indices.count == 0) return std::nullopt;
  return with_ids(indices, [&](const auto* ids) {
    return find_outside_of(ids, indices.count, rows, executor);
  });
}

CopiedIndices copy_indices(const RowIndices& indices, std::int64_t rows, Executor* executor,
                           Arena& scratch) {
  if (indices.count == 0) return {};
  if (rows == 0) return {{}, find_outside(indices, rows, executor)};
  return with_ids(indices, [&](const auto* ids) {
    return copy_of(ids, indices.count, rows, executor, scratch);
  });
}

}  // namespace embertable::sharded
