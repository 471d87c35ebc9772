#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/memory.h"
#include "embertable/executor.h"
#include "step/backward.h"

namespace embertable {

/// Memory to group entries in, for the items of one parallel region: each worker has its own, and
/// large items have memory by themselves, so that all of it is bounded by the entries of all items.
/// Reused.
class ScratchPool {
 public:
  /// Makes room for items of entries[index] entries each, all of them as wide as is said. Throws
  /// IoError if the memory cannot be had.
  void reserve(std::span<const std::int64_t> entries, bool wide, std::int32_t dim,
               std::int32_t workers);

  /// Returns the memory of an item, until the worker's next one.
  GroupScratch& of(const WorkItem& work) {
    const std::int64_t large = large_of_[work.index];
    return large < 0 ? own_[work.worker] : large_[large];
  }

  std::int64_t bytes() const noexcept;

 private:
  std::vector<GroupScratch> own_;       ///< by worker
  std::vector<std::int64_t> large_of_;  ///< by item: its number in `large_`, or -1
  Mapping large_memory_;                ///< memory that the next ones use
  std::vector<GroupScratch> large_;
};

}  // namespace embertable
