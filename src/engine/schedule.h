#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "engine/step.h"

namespace embertable::engine {

/// The order of a program's calls: which steps wait in the queues, which were dequeued and lack
/// their gradients, which update is pending. Says what may come next; does no work. Thread-safe but
/// for the steps themselves.
///
/// A step is open while replicas enqueue into it, queued until it is dequeued, then (training)
/// awaits its gradients.
class Schedule {
 public:
  Schedule(std::int32_t replicas, std::int64_t features, std::int32_t hosts, std::int32_t capacity,
           bool pipelined);

  /// The step into which `replica` enqueues next. Throws StateError if its queue is full. The step
  /// stays the same until `commit`.
  Step* open(std::int32_t replica);

  /// The replica's batch is complete. Throws StateError if another replica's batch of this step is
  /// of the other mode.
  void commit(std::int32_t replica, bool training, std::string_view name);

  /// The oldest queued step. Throws StateError naming what is missing: an empty queue, batches of
  /// different modes, or earlier training batches without gradients.
  Step* next_to_dequeue();

  /// The step that next_to_dequeue gave has been looked up. Training: it awaits its gradients from
  /// now on.
  void dequeued();

  /// The oldest dequeued training step without gradients. Throws StateError if there is none.
  Step* awaiting_gradients();

  /// Throws StateError naming `call` and the batch if a dequeued training batch lacks its
  /// gradients.
  void require_no_gradients_outstanding(std::string_view call) const;

  /// Drops the dequeued training batches that lack their gradients, and the pending update.
  void drop_dequeued();

  /// Drops the oldest queued step if it is this one.
  void drop_if_next(const Step* step);

  /// Its update may run at once; otherwise (pipelined) it must wait for the next forward.
  bool next_update_is_due() const;

  /// Its gradients have come: it no longer awaits them.
  void gradients_came();

  /// The update that waits for the next forward, or null. `updated` makes an end of it.
  Step* pending() const noexcept { return pending_; }
  void set_pending(Step* step) noexcept { pending_ = step; }

  /// A step outside the queues.
  Step* take();
  void give_back(Step* step);

  std::int64_t scratch_bytes() const;

 private:
  Step* queued(std::int64_t number) const {
    return ring_[static_cast<std::size_t>(number) % ring_.size()];
  }
  Step* take_locked();
  std::string first_awaiting() const;

  const std::int32_t replicas_;
  const std::int64_t features_;
  const std::int32_t hosts_;
  const std::int32_t capacity_;
  const bool pipelined_;

  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Step>> all_;
  std::vector<Step*> free_;
  std::vector<Step*> ring_;             ///< open and queued steps by number
  std::vector<std::int64_t> enqueued_;  ///< by replica: batches enqueued so far
  std::int64_t dequeued_ = 0;           ///< steps dequeued so far
  std::vector<Step*> awaiting_;         ///< at most two
  Step* pending_ = nullptr;
};

}  // namespace embertable::engine
