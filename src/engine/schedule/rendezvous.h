#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "embertable/executor.h"

namespace embertable::engine {

/// Lets the threads of R replicas meet for one collective call.
class Rendezvous {
 public:
  Rendezvous(std::int32_t replicas, std::chrono::milliseconds timeout);

  /// Returns when all replicas have called and the last to arrive has run `work`; throws what
  /// `work` threw. Every replica first runs its `arrive` and, after work that did not throw, its
  /// `leave`, one replica at a time and before it can arrive again. Throws StateError naming `call`
  /// and the absent replicas after the timeout, or at once if this replica is already here.
  void meet(std::int32_t replica, std::string_view call, FunctionRef<void()> arrive,
            FunctionRef<void()> work, FunctionRef<void()> leave);

  /// Makes waiting threads throw a StateError that says why, even if `resume` comes before they
  /// wake. No thread waits again before `resume`.
  void stop(std::string why);
  void resume();

  /// Stops, and returns when no thread is here any more.
  void close();

 private:
  void await_others(std::unique_lock<std::mutex>& lock, std::int32_t replica,
                    std::string_view call);
  void finish(std::unique_lock<std::mutex>& lock, FunctionRef<void()> work);
  bool everyone_is_here() const { return arrived_ == static_cast<std::int32_t>(here_.size()); }
  void break_off();
  std::string absent() const;

  const std::chrono::milliseconds timeout_;
  std::mutex mutex_;
  std::condition_variable done_;
  std::vector<bool> here_;
  std::int32_t arrived_ = 0;  ///< replicas that have arrived at this meeting
  std::uint64_t meeting_ = 0;
  std::exception_ptr error_;      ///< error of the last meeting
  std::int32_t inside_ = 0;       ///< threads in `meet`
  bool stopped_ = false;          ///< nobody may wait
  std::uint64_t broken_off_ = 0;  ///< meetings that a stop ended before all had arrived
  std::string why_stopped_;       ///< reason of the last stop
  std::condition_variable left_;  ///< signalled when nobody is inside
};

}  // namespace embertable::engine
