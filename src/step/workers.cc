#include "step/workers.h"

#include <algorithm>

#include "base/float_environment.h"

namespace embertable {

void run_items(Executor& executor, std::int64_t inline_floats, std::int64_t items,
               std::int64_t floats, FunctionRef<void(const WorkItem&)> body) {
  if (floats >= inline_floats && items != 1)
    return executor.run(items, [&](const WorkItem& item) {
      const FloatEnvironment ours;
      body(item);
    });
  const FloatEnvironment ours;
  for (std::int64_t i = 0; i < items; ++i) body({i, i + 1 < items ? i + 1 : -1, 0});
}

Workers::Workers(Executor& executor, std::int64_t inline_floats)
    : executor_(executor), inline_floats_(inline_floats), worked_(executor.workers()) {}

std::int32_t Workers::run(std::int64_t items, std::int64_t floats,
                          FunctionRef<void(const WorkItem&)> body) {
  for (std::atomic<bool>& worked : worked_) worked.store(false, std::memory_order_relaxed);
  run_items(executor_, inline_floats_, items, floats, [&](const WorkItem& item) {
    std::atomic<bool>& worked = worked_[item.worker];
    // A store takes the line from the others, whose marks are on it too.
    if (!worked.load(std::memory_order_relaxed)) worked.store(true, std::memory_order_relaxed);
    body(item);
  });
  return static_cast<std::int32_t>(std::count(worked_.begin(), worked_.end(), true));
}

std::int32_t Workers::run(DealtItems& items, std::int64_t floats,
                          FunctionRef<void(const WorkItem&)> body) {
  if (!run_together(floats)) return run(items.size(), floats, body);
  items.deal();
  return run(items.size(), floats, [&](const WorkItem& work) { body(items.claim(work.worker)); });
}

}  // namespace embertable
