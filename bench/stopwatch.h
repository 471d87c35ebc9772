#pragma once

#include <chrono>
#include <utility>

namespace embertable::bench {

/// Seconds between laps, by the steady clock.
class Stopwatch {
 public:
  double lap() {
    const Clock::time_point now = Clock::now();
    return std::chrono::duration<double>(now - std::exchange(last_, now)).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point last_ = Clock::now();
};

}  // namespace embertable::bench
