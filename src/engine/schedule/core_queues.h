#pragma once

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "engine/schedule/step.h"

namespace embertable::engine {

/// Cores first <= c < last.
struct CoreRange {
  std::int32_t first = 0, last = 0;
};

/// A queue of batches for each core, and the open and queued steps that these batches make up. Also
/// notes which thread is filling the next batch of a core. Not thread-safe.
class CoreQueues {
 public:
  CoreQueues(std::int32_t cores, std::int32_t cores_per_replica, std::int32_t capacity);

  /// Returns "replica 1", or "replica 1 (core 0)" if a replica has several cores.
  std::string name_of(std::int32_t core) const;

  std::int32_t cores() const noexcept { return static_cast<std::int32_t>(queues_.size()); }
  std::int32_t capacity() const noexcept { return static_cast<std::int32_t>(ring_.size()); }

  /// Batches that a core has enqueued so far.
  std::int64_t enqueued(std::int32_t core) const { return queues_[core].enqueued; }
  void count_batches(CoreRange cores);

  /// The thread that fills a core's next batch, or none.
  std::thread::id filler(std::int32_t core) const { return queues_[core].filler; }
  bool is_held(CoreRange cores) const;
  void hold(CoreRange cores, std::thread::id thread);

  /// Whether no thread fills these cores and there is room, as far as the cores agree on their
  /// step.
  bool may_open(CoreRange cores) const;

  /// The step that a core's next batch belongs to; null if it is not open yet.
  Step*& next_of(std::int32_t core) { return at(queues_[core].enqueued); }
  bool is_filling(const Step& step, std::int32_t core) const;

  /// Whether there is a batch in the queue of this core, or of every core.
  bool has_batch(std::int32_t core) const { return queues_[core].enqueued > dequeued_; }
  bool is_complete() const { return all_have(dequeued_); }

  /// Returns the step that follows the oldest; null while a queue lacks its batch.
  Step* second() const;

  /// Returns how many steps are queued: every core has its batch of them.
  std::int64_t queued() const;

  /// Removes the batches of steps that some core lacks, and of the newest `steps` of those that are
  /// queued. Gives these steps to `free`, which has room for them. Returns how many batches.
  /// Requires: no thread fills a core; 0 <= steps <= queued().
  std::int64_t remove_newest(std::int64_t steps, std::vector<Step*>& free);
  std::int64_t remove_unmatched(std::vector<Step*>& free) { return remove_newest(0, free); }

  /// Returns the oldest step; `pop` also removes it.
  Step* front() const { return ring_[dequeued_ % capacity()]; }
  Step* pop();

 private:
  struct Queue {
    std::int64_t enqueued = 0;
    std::thread::id filler;
  };

  /// Whether every core has enqueued its batch of a step.
  bool all_have(std::int64_t number) const;
  Step*& at(std::int64_t number) { return ring_[number % capacity()]; }

  const std::int32_t cores_per_replica_;
  std::vector<Queue> queues_;  ///< by core
  std::vector<Step*> ring_;    ///< open and queued steps by number
  std::int64_t dequeued_ = 0;  ///< steps dequeued so far
};

}  // namespace embertable::engine
