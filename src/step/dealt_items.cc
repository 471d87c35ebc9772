#include "step/dealt_items.h"

#include <algorithm>

#include "base/assert.h"

namespace embertable {

void DealtItems::start(std::int32_t workers, std::int64_t most) {
  EMBERTABLE_ASSERT(most < std::int64_t{1} << 32);
  if (std::ssize(ranges_) != workers) {
    first_of_.resize(workers);
    ranges_ = std::vector<Range>(workers);  // last: the lists are complete if it is
  }
  worker_of_.clear();
  worker_of_.reserve(most);
  dealt_.reserve(most);
}

void DealtItems::add(double place) {
  const auto workers = static_cast<std::int32_t>(ranges_.size());
  worker_of_.push_back(std::clamp(static_cast<std::int32_t>(place * workers), 0, workers - 1));
}

void DealtItems::deal() noexcept {
  std::ranges::fill(first_of_, 0);
  for (const std::int32_t worker : worker_of_) ++first_of_[worker];
  std::uint32_t first = 0;
  for (std::size_t worker = 0; worker < ranges_.size(); ++worker) {
    const std::uint32_t end = first + first_of_[worker];
    ranges_[worker].ends.store(pack(first, end), std::memory_order_relaxed);
    first_of_[worker] = first;
    first = end;
  }
  dealt_.resize(worker_of_.size());
  for (std::size_t i = 0; i < worker_of_.size(); ++i)
    dealt_[first_of_[worker_of_[i]]++] = static_cast<std::uint32_t>(i);
}

WorkItem DealtItems::claim(std::int32_t worker) noexcept {
  const auto workers = static_cast<std::int32_t>(ranges_.size());
  for (std::int32_t i = 0; i < workers; ++i) {
    const std::int32_t owner = worker + i < workers ? worker + i : worker + i - workers;
    const WorkItem item = claim_of(owner, worker);
    if (item.worker >= 0) return item;
  }
  EMBERTABLE_ASSERT(false);  // there are no more claims than items
  return {};
}

/// Returns an item of the owner; its worker is -1 if none is left.
WorkItem DealtItems::claim_of(std::int32_t owner, std::int32_t worker) noexcept {
  std::atomic<std::uint64_t>& ends = ranges_[owner].ends;
  std::uint64_t seen = ends.load(std::memory_order_relaxed);
  for (;;) {
    const auto first = static_cast<std::uint32_t>(seen);
    const auto end = static_cast<std::uint32_t>(seen >> 32);
    if (first == end) return {.worker = -1};
    const bool own = owner == worker;
    if (!ends.compare_exchange_weak(seen, own ? pack(first + 1, end) : pack(first, end - 1),
                                    std::memory_order_relaxed))
      continue;
    WorkItem item = {.index = dealt_[own ? first : end - 1], .next = -1, .worker = worker};
    if (first + 1 < end) item.next = dealt_[own ? first + 1 : end - 2];
    return item;
  }
}

}  // namespace embertable
