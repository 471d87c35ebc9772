#pragma once

#include <atomic>
#include <cstdint>

namespace embertable::engine {

/// A mutex that threads get in the order in which they asked. Threads that lock it again and again,
/// such as those of a training loop, keep no other thread from it. A forked child may destroy it
/// whoever held it or waited for it in the parent.
class FairMutex {
 public:
  void lock() noexcept {
    const std::uint64_t turn = asked_.fetch_add(1);
    for (std::uint64_t done; (done = done_.load()) != turn;) done_.wait(done);
  }
  void unlock() noexcept {
    done_.fetch_add(1);
    done_.notify_all();
  }

 private:
  std::atomic<std::uint64_t> asked_ = 0;  ///< threads that have asked so far
  std::atomic<std::uint64_t> done_ = 0;   ///< threads that have unlocked so far
};

}  // namespace embertable::engine
