#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/schedule/core_queues.h"
#include "engine/schedule/patience.h"

namespace embertable::engine {

/// Lets threads wait for each other at the queues: for room, in the order of their arrival, or for
/// batches. Requires (every call): the mutex that protects the queues is locked. `lock` holds it,
/// and releases it while a thread waits.
class QueueWaits {
 public:
  using Timeout = std::optional<std::chrono::milliseconds>;

  /// `timeout` applies to calls that give none.
  QueueWaits(CoreQueues& queues, std::chrono::milliseconds timeout)
      : queues_(queues), timeout_(timeout) {}

  /// Notes whether several threads call. A single thread would wait in vain, so it is refused at
  /// once unless it gives a timeout. The constructing thread counts as the first.
  void note_caller();

  /// Gives the cores to this thread once no thread fills them and there is room. Throws StateError
  /// naming the replica after the timeout.
  void hold(std::unique_lock<std::mutex>& lock, CoreRange cores, Timeout timeout);

  /// Ends the filling of the cores by this thread.
  void let_go(CoreRange cores);

  /// Gives cores to the threads that wait for room and can have it now.
  void serve();

  /// Returns when there may be a batch in every queue. `patience` is set by a call's first wait.
  /// Throws StateError naming the replicas that lack one after the timeout.
  void await_batches(std::unique_lock<std::mutex>& lock, Timeout timeout,
                     std::optional<Patience>& patience);

  /// Wakes one thread that waits for batches, if there is one in every queue.
  void wake_consumer();

  /// Makes waiting threads throw a StateError that says why, even if `resume` comes before they
  /// wake. No thread waits again before `resume`.
  void stop(std::string why);
  void resume() { stopped_ = false; }

  /// Returns when no thread waits or fills cores. Requires: `stop` was called.
  void await_departure(std::unique_lock<std::mutex>& lock);

 private:
  /// A thread that waits for room. The thread that makes room hands it the cores, so that it need
  /// not compete for them.
  struct Waiting {
    CoreRange cores;
    std::thread::id thread;
    bool for_room = true;  ///< else only for threads that fill these cores
    bool granted = false, refused = false, stopped = false;
    std::condition_variable wake = {};
  };

  void await_room(std::unique_lock<std::mutex>& lock, CoreRange cores, Timeout timeout);
  void serve_waiting();
  std::chrono::milliseconds limit_of(Timeout timeout) const;
  [[noreturn]] void refuse(CoreRange cores, std::chrono::milliseconds limit) const;

  CoreQueues& queues_;
  const std::chrono::milliseconds timeout_;
  const std::thread::id first_thread_ = std::this_thread::get_id();
  bool several_threads_ = false;
  std::vector<Waiting*> waiting_;   ///< in the order of their arrival
  std::int32_t consumers_ = 0;      ///< threads that wait for batches
  std::condition_variable filled_;  ///< wakes them
  bool stopped_ = false;            ///< no thread may wait
  std::uint64_t stops_ = 0;
  std::string why_stopped_;
  std::condition_variable left_;  ///< wakes `await_departure`
};

}  // namespace embertable::engine
