#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "embertable/executor.h"
#include "engine/schedule/core_queues.h"
#include "engine/schedule/queue_waits.h"
#include "engine/schedule/step.h"

namespace embertable::engine {

/// Orders the calls of a program: knows which steps wait in the queues, and which were dequeued and
/// lack their gradients. Decides what may come next and lets threads wait for it; does no work.
/// Thread-safe except for the steps themselves.
///
/// Each core has a queue; one core is a whole replica unless replicas have several. A step is open
/// while cores enqueue into it, queued until it is dequeued, and then, if it trains, awaits its
/// gradients.
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

  /// Returns a call's timeout, at most StrategyOptions::kMaxTimeout. Throws ValueError naming
  /// `call` for a negative one.
  static Timeout checked_timeout(std::string_view call, const Timeout& timeout);

  explicit Schedule(const Form& form);

  /// Returns the step into which these cores enqueue next, reserved for them until `commit` or
  /// `release`. Waits while another thread enqueues there, and until the timeout for room in the
  /// queues; does not wait for room if only one thread has called and it gives no timeout. Throws
  /// StateError naming the replica, also if the cores have enqueued different numbers of batches.
  Step& open(CoreRange cores, Timeout timeout);

  /// Completes the cores' batches. Throws StateError if another core's batch of this step has the
  /// other mode; the cores then stay reserved.
  void commit(CoreRange cores, bool training, std::string_view name);

  /// Gives the cores' batches up.
  void release(CoreRange cores);

  /// Returns the oldest queued step, or null while a queue is empty. `sequential`: the step is not
  /// pipelined. Throws StateError naming an earlier training batch that lacks its gradients.
  Step* next_to_dequeue(bool sequential);

  /// Returns the step that follows the one which next_to_dequeue returned, or null if a queue lacks
  /// its batch. Nobody changes it before it is dequeued.
  Step* following() const;

  /// Returns when there may be a batch in every queue. `patience` is that of the call, set by its
  /// first wait. Throws StateError naming the replicas that lack one, as `open` would.
  void await_batches(Timeout timeout, std::optional<Patience>& patience);

  /// Lets another waiting thread dequeue, because the caller could and does not.
  void pass_on();

  /// Notes that the step which next_to_dequeue returned has been looked up. A training step now
  /// awaits its gradients.
  void dequeued();

  /// The oldest dequeued training step without gradients, and whether its update may run at once.
  /// Otherwise (pipelined) the update waits for the next forward.
  struct Awaiting {
    Step* step = nullptr;
    bool update_is_due = true;
  };

  /// Throws StateError if no step awaits its gradients.
  Awaiting awaiting_gradients() const;

  /// Returns the number of dequeued training batches that lack their gradients.
  std::int64_t lacking_gradients() const;

  /// Throws StateError naming `call` and the batch if a dequeued training batch lacks its
  /// gradients.
  void require_no_gradients_outstanding(std::string_view call) const;

  /// Whether the update of the oldest step that awaits gradients could not be prepared. A later one
  /// gets none before it. Requires: the step lock is held.
  bool awaits_refused() const;

  /// Drops the dequeued training batches that lack their gradients. Returns how many steps they
  /// are of. Requires: the step lock is held.
  std::int64_t drop_dequeued();

  /// Drops batches of steps that some core lacks. Returns how many. Throws StateError naming a core
  /// whose batch another thread is enqueueing.
  std::int64_t drop_unmatched();

  /// Drops the newest `steps` queued steps, by default all, and what drop_unmatched drops. Calls
  /// `forget_oldest` if the oldest is among them, before a thread may fill it anew. Returns how
  /// many queued steps. Throws as drop_unmatched. Requires: the step lock is held.
  std::int64_t drop_queued(std::optional<std::int64_t> steps, FunctionRef<void()> forget_oldest);

  /// Returns the number of queued steps.
  std::int64_t queued() const;

  /// Notes that the gradients of the oldest step have come. `updated`: rows were updated by them,
  /// so that the step is free; else the caller gives it back once they are.
  void gradients_came(bool updated);

  /// Takes a step for use outside the queues, and gives it back.
  Step* take();
  void give_back(Step* step);

  /// Notes that the calling thread uses the queues, also if it first waits elsewhere.
  void note();

  /// Makes waiting threads throw a StateError that says why, even if `resume` comes before they
  /// wake. No thread waits again before `resume`.
  void stop(std::string why);
  void resume();

  /// Stops, and returns when the last waiting thread has left.
  void close();

  /// Returns the bytes of all steps. Requires: none is being looked up or updated. A batch that a
  /// thread is enqueueing counts with its size before.
  std::int64_t scratch_bytes() const;

 private:
  void add_free_step();
  Step* take_locked();
  std::string first_awaiting() const;
  void require_no_filler(std::string_view call) const;
  [[noreturn]] void refuse_number(std::int32_t core, std::int32_t other) const;
  [[noreturn]] void refuse_mode(const Step& step, std::int32_t core) const;

  const Form form_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Step>> all_;
  std::vector<Step*> free_;
  std::vector<Step*> awaiting_;  ///< at most two
  CoreQueues queues_;
  QueueWaits waits_;
};

}  // namespace embertable::engine
