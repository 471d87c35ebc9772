#include "python/src/calls.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string>

#include "embertable/errors.h"

namespace embertable::python {
namespace {

/// Counts the forks that led to this process.
std::atomic<std::uint32_t> forks = 0;

std::uint32_t forks_so_far() {
  [[maybe_unused]] static const int counted =
      pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  return forks.load(std::memory_order_relaxed);
}

/// The objects inside whose calls this thread is.
thread_local std::vector<const void*> inside_of;

}  // namespace

Process::Process() : forks_(forks_so_far()) {}

bool Process::is_here() const noexcept { return forks_ == forks_so_far(); }

void Process::require_here(const char* what) const {
  if (!is_here()) {
    throw StateError(std::string(what) + " was made in another process than " +
                     std::to_string(getpid()) + ", which is a fork of it");
  }
}

Inside::Inside(const void* object) {
  if (std::find(inside_of.begin(), inside_of.end(), object) != inside_of.end())
    throw StateError("the embedding is called by a function that it calls itself");
  inside_of.push_back(object);
}

Inside::~Inside() { inside_of.pop_back(); }

}  // namespace embertable::python
