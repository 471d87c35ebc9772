#pragma once

#include <atomic>
#include <exception>
#include <mutex>
#include <utility>

namespace embertable {

/// Keeps the first exception that a user's function throws in the middle of an update. Thread-safe
/// except for `forget` and `rethrow`.
class CallbackFailure {
 public:
  bool failed() const noexcept { return failed_.load(std::memory_order_relaxed); }

  void keep(std::exception_ptr error) noexcept {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
    failed_.store(true, std::memory_order_relaxed);
  }

  /// Forgets the failure of an earlier update, which ended with another exception.
  void forget() noexcept {
    failed_.store(false, std::memory_order_relaxed);
    error_ = nullptr;
  }

  /// Throws the kept exception, if there is one, and forgets it.
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
