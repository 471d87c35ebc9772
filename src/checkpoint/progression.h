#pragma once

#include <cstdint>

namespace embertable::checkpoint {

/// Row numbers of a table in arithmetic progression: first, first + step, ... (`count` of them).
/// DIV shards have step 1; the step of MOD shards is the number of hosts.
struct Progression {
  std::int64_t first = 0;  ///< >= 0
  std::int64_t step = 1;   ///< >= 1
  std::int64_t count = 0;  ///< >= 0

  std::int64_t operator[](std::int64_t index) const noexcept { return first + index * step; }
  friend bool operator==(const Progression&, const Progression&) = default;
};

/// The common rows of two progressions, as indices into each: a[a_index[i]] == b[b_index[i]].
struct Overlap {
  Progression a_index;
  Progression b_index;  ///< has the same count
};

/// Returns the common rows, rising. Source: the linear congruence a.first + x * a.step = b.first
/// (mod b.step).
Overlap overlap(const Progression& a, const Progression& b) noexcept;

}  // namespace embertable::checkpoint
