#pragma once

#include <algorithm>
#include <cstdint>

#include "base/float_environment.h"
#include "embertable/executor.h"

namespace embertable {

// When work on elements and rows is shared out among workers, and in which portions.

/// Minimum bytes for several workers: for less, starting them takes longer than the work.
inline constexpr std::int64_t kSharedOutBytes = 256 << 10;

/// Most rows, and about the bytes of rows, that a worker gathers at once: more than that minimum,
/// since the addresses of the first rows of each portion are not fetched ahead.
inline constexpr std::int64_t kGatheredRows = 16 << 10;
inline constexpr std::int64_t kGatheredBytes = 4 * kSharedOutBytes;

/// Calls body(first, last) on ranges that make up [0, count), in the library's floating-point
/// environment, on the workers of the executor (null: this thread). `bytes`, >= 0, is about what
/// one of the `count` reads or writes; it sizes the ranges to kSharedOutBytes, and a single range
/// runs on this thread. The body must not throw: nothing may be allocated in it.
template <class Body>
void for_ranges(std::int64_t count, std::int64_t bytes, Executor* executor, Body body) {
  const std::int64_t each =
      std::max<std::int64_t>(1, kSharedOutBytes / std::max<std::int64_t>(1, bytes));
  const auto run = [&](std::int64_t first, std::int64_t last) {
    const FloatEnvironment ours;
    body(first, last);
  };
  if (executor == nullptr || count <= each) return run(0, count);
  executor->run((count + each - 1) / each, [&](const WorkItem& item) {
    run(item.index * each, std::min(count, (item.index + 1) * each));
  });
}

}  // namespace embertable
