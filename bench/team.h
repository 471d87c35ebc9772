#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "embertable/executor.h"

namespace embertable::bench {

/// Persistent threads, each on a CPU of its own where there are enough, that run one function
/// together with the caller. Between two jobs they spin for a moment, then sleep.
class Team {
 public:
  /// size >= 1, the caller counted.
  explicit Team(int size);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int size() const noexcept { return size_; }

  /// Calls body(worker) once for every 0 <= worker < size(), worker 0 on the caller's thread;
  /// returns when all are done. The body does not throw. One call at a time.
  void run(FunctionRef<void(int)> body);

  /// Keeps the calling thread on the team's first CPU while it lives, so that it disturbs no other
  /// worker.
  class CallerOnCpu {
   public:
    explicit CallerOnCpu(const Team& team);
    ~CallerOnCpu();
    CallerOnCpu(const CallerOnCpu&) = delete;
    CallerOnCpu& operator=(const CallerOnCpu&) = delete;

   private:
    bool moved_;
    cpu_set_t before_;
  };

  /// Sends the threads to sleep at once instead of after their moment of spinning.
  void rest() noexcept;

 private:
  void work(int worker);

  int size_;
  std::vector<int> cpus_;  ///< one for each worker, or empty: wherever there is room
  std::vector<std::thread> threads_;
  FunctionRef<void(int)>* body_ = nullptr;
  alignas(64) std::atomic<std::uint64_t> job_{0};
  alignas(64) std::atomic<int> running_{0};
  std::atomic<bool> resting_{false};
  std::atomic<bool> closing_{false};
};

}  // namespace embertable::bench
