#pragma once

#include <atomic>
#include <mutex>
#include <thread>

#include "embertable/errors.h"

namespace embertable::engine {

/// A mutex that throws StateError when its own thread locks it again. It protects work that calls
/// functions of the user: a function that called the engine would otherwise deadlock.
class ReentrancyGuard {
 public:
  void lock() {
    const std::thread::id me = std::this_thread::get_id();
    if (owner_.load(std::memory_order_relaxed) == me) {
      throw StateError(
          "a function that the engine calls (a rate, a log, an initializer, an executor) must not "
          "call its steps, rows, memory or build, got such a call");
    }
    mutex_.lock();
    owner_.store(me, std::memory_order_relaxed);
  }
  void unlock() noexcept {
    owner_.store(std::thread::id(), std::memory_order_relaxed);
    mutex_.unlock();
  }

 private:
  std::mutex mutex_;
  std::atomic<std::thread::id> owner_ = std::thread::id();
};

}  // namespace embertable::engine
