#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "embertable/executor.h"
#include "step/dealt_items.h"

namespace embertable {

/// Calls body for every item, in the library's float environment: on the executor, or on the
/// calling thread alone if there is one item, or all items move fewer than `inline_floats` floats.
/// Allocates nothing.
void run_items(Executor& executor, std::int64_t inline_floats, std::int64_t items,
               std::int64_t floats, FunctionRef<void(const WorkItem&)> body);

/// Runs parallel regions on an executor, as run_items, and counts who takes part. One region at a
/// time.
class Workers {
 public:
  /// The executor is borrowed. Regions that move fewer than `inline_floats` floats are run by the
  /// caller.
  Workers(Executor& executor, std::int64_t inline_floats);

  std::int32_t count() const noexcept { return static_cast<std::int32_t>(worked_.size()); }

  /// Whether several workers run the items of a region that moves this number of floats.
  bool run_together(std::int64_t floats) const noexcept {
    return count() > 1 && floats >= inline_floats_;
  }

  /// Calls body for every item. `floats` is the number of floats that all items move. Returns how
  /// many workers ran at least one item.
  std::int32_t run(std::int64_t items, std::int64_t floats,
                   FunctionRef<void(const WorkItem&)> body);

  /// The same for items that are dealt to the workers.
  std::int32_t run(DealtItems& items, std::int64_t floats, FunctionRef<void(const WorkItem&)> body);

 private:
  Executor& executor_;
  const std::int64_t inline_floats_;
  std::vector<std::atomic<bool>> worked_;  ///< by worker: it has run an item of the running region
};

}  // namespace embertable
