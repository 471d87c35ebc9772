#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "embertable/executor.h"

namespace embertable {

/// The items of a region, each dealt to one worker. A worker takes its own first; one that has none
/// left takes those of others from their end. If regions deal the items of a table to the same
/// workers each time, its rows, gradients and entries stay in the caches of those workers: a line
/// that another one has changed comes from that one's cache, in a virtual machine perhaps from
/// another part of the processor.
class DealtItems {
 public:
  /// Starts an empty list with room for `most` items. Requires: most < 2^32.
  void start(std::int32_t workers, std::int64_t most);

  /// Appends an item that lies at this place in the step's work, 0..1, of which each
  /// worker has an equal part.
  void add(double place);

  /// Deals the items. Each worker's are in the order in which they were added.
  void deal() noexcept;

  std::int64_t size() const noexcept { return std::ssize(worker_of_); }

  /// Returns the item that a worker runs in its turn. Requires: `deal` has run; called once for
  /// each item. Thread-safe.
  WorkItem claim(std::int32_t worker) noexcept;

 private:
  static constexpr std::size_t kLineBytes = 64;

  /// Items of one worker that nobody has claimed, numbered in the order of the deal.
  struct alignas(kLineBytes) Range {
    std::atomic<std::uint64_t> ends{0};  ///< first in the low half, end in the high half
  };

  static constexpr std::uint64_t pack(std::uint64_t first, std::uint64_t end) noexcept {
    return end << 32 | first;
  }
  WorkItem claim_of(std::int32_t owner, std::int32_t worker) noexcept;

  std::vector<Range> ranges_;            ///< by worker
  std::vector<std::uint32_t> first_of_;  ///< by worker: its first item in the order of the deal
  std::vector<std::int32_t> worker_of_;  ///< by item
  std::vector<std::uint32_t> dealt_;     ///< items in the order of the deal
};

}  // namespace embertable
