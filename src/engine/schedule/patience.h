#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

namespace embertable::engine {

/// The time for which a call still waits for other threads of the caller. It is used up in short
/// pieces: while the process is stopped, at most one of them passes, because nobody can come then.
class Patience {
 public:
  explicit Patience(std::chrono::milliseconds limit)
      : left_(limit),
        piece_(
            std::clamp(limit / 8, std::chrono::milliseconds(1), std::chrono::milliseconds(250))) {}

  /// Waits until done() or until no time is left. Returns done().
  template <class Done>
  bool wait(std::condition_variable& wake, std::unique_lock<std::mutex>& lock, Done done) {
    while (left_.count() > 0) {
      const std::chrono::nanoseconds piece = std::min(left_, piece_);
      const auto began = std::chrono::steady_clock::now();
      const bool is_done = wake.wait_for(lock, piece, done);
      left_ -= std::min<std::chrono::nanoseconds>(piece, std::chrono::steady_clock::now() - began);
      if (is_done) return true;
    }
    return done();
  }

 private:
  std::chrono::nanoseconds left_;
  std::chrono::nanoseconds piece_;
};

}  // namespace embertable::engine
