#pragma once

#include <mutex>
#include <shared_mutex>

namespace embertable::python {

/// A shared mutex whose readers do not keep a writer from it by overlapping each other: while one
/// waits, new readers wait for it.
class FairSharedMutex {
 public:
  void lock() {
    const std::lock_guard turn(turn_);
    mutex_.lock();
  }
  void unlock() { mutex_.unlock(); }
  void lock_shared() {
    const std::lock_guard turn(turn_);
    mutex_.lock_shared();
  }
  void unlock_shared() { mutex_.unlock_shared(); }

 private:
  std::mutex turn_;  ///< held by a writer until it has the other one
  std::shared_mutex mutex_;
};

}  // namespace embertable::python
