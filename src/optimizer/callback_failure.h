#pragma once

#include <atomic>
#include <exception>
#include <mutex>
#include <utility>

namespace embertable {

/// Where functions of the caller's that throw in the middle of an update leave the first exception.
/// Thread-safe but for `forget` and `rethrow`.
class CallbackFailure {
 public:
  bool failed() const noexcept { return failed_.load(std::memory_order_relaxed); }

  void keep(std::exception_ptr error) noexcept {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
    failed_.store(true, std::memory_order_relaxed);
  }

  /// Forgets the failure of an update before, which ended in another exception.
  void forget() noexcept {
    failed_.store(false, std::memory_order_relaxed);
    error_ = nullptr;
  }

  /// Throws what was kept, and forgets it.
  void rethrow() {
    if (!failed()) return;
    failed_.store(false, std::memory_order_relaxed);
    std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;
  std::exception_ptr error_;
};

}  // namespace embertable
