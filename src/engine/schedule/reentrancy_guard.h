#pragma once

#include <atomic>
#include <memory>
#include <thread>

#include "embertable/executor.h"
#include "engine/schedule/fair_mutex.h"

namespace embertable::engine {

/// Marks a thread while it works for an engine: while it runs items of the engine's regions, or one
/// of its hosts. Functions of the user may be called there. An engine is known by its executor.
class AtWork {
 public:
  explicit AtWork(const Executor& executor) noexcept;
  ~AtWork();
  AtWork(const AtWork&) = delete;
  AtWork& operator=(const AtWork&) = delete;

  /// True if this thread works for the engine with this executor.
  static bool is_for(const Executor& executor) noexcept;

 private:
  const Executor& executor_;
  const AtWork* const outer_;  ///< an engine's function may call another engine
};

/// Returns an executor of one engine's own that runs regions on `executor` and marks the threads.
std::shared_ptr<Executor> mark_workers(std::shared_ptr<Executor> executor);

/// A mutex that throws StateError when it is locked by the thread that holds it, or by one that
/// works for its engine. It protects work that calls functions of the user: a function that called
/// the engine would otherwise deadlock.
class ReentrancyGuard {
 public:
  /// `executor` is the engine's, made by `mark_workers`.
  explicit ReentrancyGuard(const Executor& executor) : executor_(executor) {}

  /// Throws StateError in a function that the engine calls while the mutex is locked.
  void refuse_reentry() const;

  void lock() {
    refuse_reentry();
    mutex_.lock();
    owner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  }
  void unlock() noexcept {
    owner_.store(std::thread::id(), std::memory_order_relaxed);
    mutex_.unlock();
  }

 private:
  const Executor& executor_;
  FairMutex mutex_;
  std::atomic<std::thread::id> owner_ = std::thread::id();
};

}  // namespace embertable::engine
