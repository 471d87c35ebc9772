#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "kernels/level.h"
#include "step/hot_bucket.h"
#include "step/workers.h"

namespace embertable {

/// The buckets of one update in which few rows have many of the entries. The gradients of those
/// rows are summed by all workers before the buckets are updated. Its memory is reused.
class HotRows {
 public:
  /// Forgets all buckets.
  void clear() noexcept { buckets_in_use_ = 0; }

  /// Looks for hot rows in a bucket of entries first <= i < first + count of the plan, and keeps it
  /// if it has some. Returns null if it has none, else
  /// an object that is valid until `clear`. `table` accumulates and is borrowed until then.
  HotBucket* find(const TableUpdate& table, std::int64_t first, std::int64_t count);

  /// Sums the gradients of the hot rows of all kept buckets. Returns how many workers took part.
  std::int32_t sum(Workers& workers, SimdLevel level);

  std::int64_t bytes() const noexcept;

 private:
  struct Part {
    HotBucket* bucket = nullptr;
    std::int64_t part = 0;
  };

  std::deque<HotBucket> buckets_;  ///< buckets beyond buckets_in_use_ keep memory for later updates
  std::size_t buckets_in_use_ = 0;
  std::vector<Part> parts_;
};

}  // namespace embertable
