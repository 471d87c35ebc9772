#pragma once

#include <chrono>

namespace embertable::mpi {

/// Waits without events. Ranks often share processors, so a wait soon yields them, and later
/// sleeps.
class Idling {
 public:
  using Clock = std::chrono::steady_clock;

  Clock::duration time() const noexcept { return Clock::now() - begin_; }

  /// Spins for 50 microseconds in all, yields for 10 milliseconds, then sleeps for at most one.
  void pause() const noexcept;

 private:
  Clock::time_point begin_ = Clock::now();
};

}  // namespace embertable::mpi
