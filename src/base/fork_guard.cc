#include "base/fork_guard.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <string>

#include "embertable/errors.h"

namespace embertable {
namespace {

/// Counts the forks that led to this process.
std::atomic<std::uint32_t> forks = 0;

std::uint32_t forks_so_far() {
  [[maybe_unused]] static const int registered =
      pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  return forks.load(std::memory_order_relaxed);
}

}  // namespace

ForkGuard::ForkGuard() : forks_(forks_so_far()), process_(getpid()) {}

bool ForkGuard::forked() const noexcept { return forks.load(std::memory_order_relaxed) != forks_; }

void ForkGuard::require_same_process(std::string_view subject) const {
  if (!forked()) return;
  throw StateError(std::string(subject) + " must be called in the process that made it, " +
                   std::to_string(process_) + ", got a call in its fork " +
                   std::to_string(getpid()));
}

}  // namespace embertable
