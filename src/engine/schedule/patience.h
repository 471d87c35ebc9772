#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>

#include "base/interruption.h"

namespace embertable::engine {

/// The time for which a call still waits for other threads of the caller. It is used up in short
/// pieces: while the process is stopped, at most one of them passes, because nobody can come then.
/// Between two pieces the caller may end the wait by its Interruption.
class Patience {
 public:
  explicit Patience(std::chrono::milliseconds limit)
      : left_(limit),
        piece_(
            std::clamp(limit / 8, std::chrono::milliseconds(1), std::chrono::milliseconds(250))) {}

  /// Waits until done(), until no time is left, or until the Interruption throws. Returns done().
  /// If it is false, the caller undoes what it has noted of the wait, then calls `rethrow`.
  template <class Done>
  bool wait(std::condition_variable& wake, std::unique_lock<std::mutex>& lock, Done done) {
    while (left_.count() > 0) {
      const std::chrono::nanoseconds piece = std::min(left_, piece_);
      const auto began = std::chrono::steady_clock::now();
      const bool is_done = wake.wait_for(lock, piece, done);
      left_ -= std::min<std::chrono::nanoseconds>(piece, std::chrono::steady_clock::now() - began);
      if (is_done) return true;
      if (is_interrupted(lock)) break;
    }
    return done();
  }

  /// Throws what the Interruption has thrown, if it ended the wait.
  void rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  /// Asks with the lock released: the check may wait for a thread that needs it.
  bool is_interrupted(std::unique_lock<std::mutex>& lock) {
    lock.unlock();
    try {
      Interruption::ask();
    } catch (...) {
      thrown_ = std::current_exception();
    }
    lock.lock();
    return thrown_ != nullptr;
  }

  std::chrono::nanoseconds left_;
  std::chrono::nanoseconds piece_;
  std::exception_ptr thrown_;
};

}  // namespace embertable::engine
