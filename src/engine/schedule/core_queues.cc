#include "engine/schedule/core_queues.h"

#include <algorithm>
#include <utility>

namespace embertable::engine {

CoreQueues::CoreQueues(std::int32_t cores, std::int32_t cores_per_replica, std::int32_t capacity)
    : cores_per_replica_(cores_per_replica), queues_(cores), ring_(capacity) {}

std::string CoreQueues::name_of(std::int32_t core) const {
  const std::string replica = "replica " + std::to_string(core / cores_per_replica_);
  if (cores_per_replica_ == 1) return replica;
  return replica + " (core " + std::to_string(core % cores_per_replica_) + ")";
}

void CoreQueues::count_batches(CoreRange cores) {
  for (std::int32_t core = cores.first; core < cores.last; ++core) ++queues_[core].enqueued;
}

bool CoreQueues::is_held(CoreRange cores) const {
  for (std::int32_t core = cores.first; core < cores.last; ++core)
    if (filler(core) != std::thread::id()) return true;
  return false;
}

void CoreQueues::hold(CoreRange cores, std::thread::id thread) {
  for (std::int32_t core = cores.first; core < cores.last; ++core) queues_[core].filler = thread;
}

bool CoreQueues::may_open(CoreRange cores) const {
  if (is_held(cores)) return false;
  for (std::int32_t core = cores.first + 1; core < cores.last; ++core)
    if (enqueued(core) != enqueued(cores.first)) return true;  // the thread that opens is refused
  return enqueued(cores.first) - dequeued_ < capacity();
}

bool CoreQueues::is_filling(const Step& step, std::int32_t core) const {
  return filler(core) != std::thread::id() && ring_[enqueued(core) % capacity()] == &step;
}

bool CoreQueues::all_have(std::int64_t number) const {
  return std::ranges::all_of(queues_, [&](const Queue& queue) { return queue.enqueued > number; });
}

std::int64_t CoreQueues::queued() const {
  return std::ranges::min(queues_, {}, &Queue::enqueued).enqueued - dequeued_;
}

std::int64_t CoreQueues::remove_newest(std::int64_t steps, std::vector<Step*>& free) {
  const std::int64_t first = dequeued_ + queued() - steps;
  const std::int64_t last = std::ranges::max(queues_, {}, &Queue::enqueued).enqueued;
  if (first == last) return 0;
  // The step after the last may be open too, its batch refused, unless the queues are full.
  const std::int64_t end = std::min(last + 1, dequeued_ + capacity());
  for (std::int64_t number = first; number < end; ++number)
    if (Step* const step = std::exchange(at(number), nullptr); step != nullptr)
      free.push_back(step);
  std::int64_t batches = 0;
  for (Queue& queue : queues_) batches += std::exchange(queue.enqueued, first) - first;
  return batches;
}

Step* CoreQueues::second() const {
  return all_have(dequeued_ + 1) ? ring_[(dequeued_ + 1) % capacity()] : nullptr;
}

Step* CoreQueues::pop() { return std::exchange(at(dequeued_++), nullptr); }

}  // namespace embertable::engine
