#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "engine/step.h"

namespace embertable::engine {

/// The order of a program's calls: which steps wait in the queues, which were dequeued and lack
/// their gradients, which update is pending. Says what may come next, and is where threads wait for
/// it; does no work. Thread-safe but for the steps themselves.
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
    std::int32_t capacity = 1;  ///< of each queue
    bool pipelined = false;
    std::chrono::milliseconds timeout{};  ///< of calls that have none of their own
  };
  using Timeout = std::optional<std::chrono::milliseconds>;
  using Deadline = std::chrono::steady_clock::time_point;

  explicit Schedule(const Form& form);

  /// The step into which cores first <= c < last enqueue next, theirs alone until `commit` or
  /// `release`. Waits while another thread enqueues there, and until the timeout for room in the
  /// queues, not at all where only one thread has called and it gives none; threads are served in
  /// the order of their coming. Throws StateError naming the replica, also if the cores have
  /// enqueued different numbers of batches.
  Step& open(std::int32_t first, std::int32_t last, Timeout timeout);

  /// The cores' batches are complete. Throws StateError if another core's batch of this step is of
  /// the other mode; then they are still theirs.
  void commit(std::int32_t first, std::int32_t last, bool training, std::string_view name);

  /// They will not be complete.
  void release(std::int32_t first, std::int32_t last);

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

  /// A thread has called that may wait elsewhere before it comes here.
  void note();

  /// Whoever waits now throws a StateError that says why, even if `resume` comes before it wakes;
  /// nobody waits again before that.
  void stop(std::string why);
  void resume();

  /// stop, and returns when the last of them has left.
  void close();

  /// Of all steps, while none is looked up or updated. What a thread enqueues now counts as before.
  std::int64_t scratch_bytes() const;

 private:
  /// A thread that waits to enqueue. Whoever makes room gives it the cores, so that it need not
  /// race for them.
  struct Waiting {
    std::int32_t first, last;
    std::thread::id thread;
    bool for_room = true;  ///< else only for other threads that enqueue
    bool granted = false, refused = false, stopped = false;
    std::condition_variable wake = {};
  };

  Step*& at(std::int64_t number) { return ring_[static_cast<std::size_t>(number) % ring_.size()]; }
  std::int64_t& enqueued(std::int32_t core) { return enqueued_[core]; }
  std::thread::id& reader(std::int32_t core) { return reader_[core]; }

  void note_caller();
  std::chrono::milliseconds limit_of(Timeout timeout) const;
  static std::string after(std::chrono::milliseconds limit);
  static std::string advice(std::chrono::milliseconds limit);
  bool is_held(std::int32_t first, std::int32_t last);
  bool may_open(std::int32_t first, std::int32_t last);
  void hold(std::int32_t first, std::int32_t last, std::thread::id thread);
  void let_go(std::int32_t first, std::int32_t last);
  void serve_waiting();
  void await_room(std::unique_lock<std::mutex>& lock, Waiting& mine, Timeout timeout);
  [[noreturn]] void refuse_to_open(std::int32_t first, std::int32_t last,
                                   std::chrono::milliseconds limit);
  Step& open_step(std::int32_t first, std::int32_t last);
  bool is_complete() const;
  void wake_consumer();
  void require_one_mode(const Step& step) const;
  Step* take_locked();
  bool is_being_filled(const Step& step, std::int32_t core) const;
  std::string name_of(std::int32_t core) const;
  std::string first_awaiting() const;

  const Form form_;
  const std::int32_t cores_;

  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Step>> all_;
  std::vector<Step*> free_;
  std::vector<Step*> ring_;              ///< open and queued steps by number
  std::vector<std::int64_t> enqueued_;   ///< by core: batches enqueued so far
  std::vector<std::thread::id> reader_;  ///< by core: the thread between open and commit, or none
  std::int64_t dequeued_ = 0;            ///< steps dequeued so far
  std::vector<Step*> awaiting_;          ///< at most two
  Step* pending_ = nullptr;

  const std::thread::id first_thread_ = std::this_thread::get_id();
  bool several_threads_ = false;    ///< have called, or one that has not made this
  std::vector<Waiting*> waiting_;   ///< to enqueue, in the order of their coming
  std::int32_t consumers_ = 0;      ///< that wait for batches
  std::condition_variable filled_;  ///< for them
  bool stopped_ = false;            ///< nobody may wait
  std::uint64_t stops_ = 0;         ///< so far
  std::string why_stopped_;         ///< the last time
  std::condition_variable left_;    ///< nobody waits any more
};

}  // namespace embertable::engine
