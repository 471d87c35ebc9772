#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/schedule/core_queues.h"
#include "engine/schedule/queue_waits.h"
#include "engine/schedule/step.h"

namespace embertable::engine {

/// The order of a program's calls: which steps wait in the queues, which were dequeued and lack
/// their gradients. Says what may come next, and is where threads wait for it; does no work.
/// Thread-safe but for the steps themselves.
///
/// Each core has a queue; one core is a whole replica unless replicas have several. A step is open
/// while cores enqueue into it, queued until it is dequeued, then (training) awaits its gradients.
class Schedule {
 public:
  struct Form {
    std::int32_t replicas = 1;
    std::int32_t cores_per_replica = 1;
    std::int64_t features = 0;
    std::int32_t hosts = 1;
    std::int32_t capacity = 1;  ///< capacity of each queue
    bool pipelined = false;
    std::chrono::milliseconds timeout{};  ///< timeout of calls that have none of their own
  };
  using Timeout = QueueWaits::Timeout;
  using Deadline = QueueWaits::Deadline;

  /// A call's timeout, no longer than StrategyOptions::kMaxTimeout. Throws ValueError naming `call`
  /// for a negative one.
  static Timeout checked_timeout(std::string_view call, const Timeout& timeout);

  explicit Schedule(const Form& form);

  /// The step into which these cores enqueue next, theirs alone until `commit` or `release`. Waits
  /// while another thread enqueues there, and until the timeout for room in the queues, not at all
  /// where only one thread has called and it gives none. Throws StateError naming the replica, also
  /// if the cores have enqueued different numbers of batches.
  Step& open(CoreRange cores, Timeout timeout);

  /// The cores' batches are complete. Throws StateError if another core's batch of this step is of
  /// the other mode; then they are still theirs.
  void commit(CoreRange cores, bool training, std::string_view name);

  /// They will not be complete.
  void release(CoreRange cores);

  /// The oldest queued step, or null while a queue is empty. `sequential`: it is not pipelined.
  /// Throws StateError naming what is missing: batches of different modes, or earlier training
  /// batches without gradients.
  Step* next_to_dequeue(bool sequential);

  /// Returns when there may be a batch in every queue. `deadline` is that of the call, set by its
  /// first wait. Throws StateError naming the replicas that lack one, when `open` would.
  void await_batches(Timeout timeout, std::optional<Deadline>& deadline);

  /// A caller that could have dequeued does not: another one that waits may.
  void pass_on();

  /// The step that next_to_dequeue gave has been looked up. Training: it awaits its gradients from
  /// now on.
  void dequeued();

  /// The oldest dequeued training step without gradients, and whether its update may run at once;
  /// otherwise (pipelined) it must wait for the next forward.
  struct Awaiting {
    Step* step = nullptr;
    bool update_is_due = true;
  };

  /// Throws StateError if no step awaits its gradients.
  Awaiting awaiting_gradients() const;

  /// Throws StateError naming `call` and the batch if a dequeued training batch lacks its
  /// gradients.
  void require_no_gradients_outstanding(std::string_view call) const;

  /// Drops the dequeued training batches that lack their gradients.
  void drop_dequeued();

  /// Drops the oldest queued step if it is this one.
  void drop_if_next(const Step* step);

  /// The oldest step's gradients have come: it no longer awaits them.
  void gradients_came();

  /// A step outside the queues.
  Step* take();
  void give_back(Step* step);

  /// Notes the calling thread, which may wait elsewhere before it comes here.
  void note();

  /// Whoever waits now throws a StateError that says why, even if `resume` comes before it wakes;
  /// nobody waits again before that.
  void stop(std::string why);
  void resume();

  /// Stops, and returns when the last waiting thread has left.
  void close();

  /// Bytes of all steps, while none is looked up or updated. A batch that a thread is enqueueing
  /// counts as before.
  std::int64_t scratch_bytes() const;

 private:
  Step* take_locked();
  std::string first_awaiting() const;

  const Form form_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Step>> all_;
  std::vector<Step*> free_;
  std::vector<Step*> awaiting_;  ///< at most two
  CoreQueues queues_;
  QueueWaits waits_;
};

}  // namespace embertable::engine
