#include "engine/rendezvous.h"

#include <algorithm>
#include <string>

#include "embertable/errors.h"

namespace embertable::engine {

Rendezvous::Rendezvous(std::int32_t replicas, std::chrono::milliseconds timeout)
    : timeout_(timeout), here_(static_cast<std::size_t>(replicas)) {}

void Rendezvous::meet(std::int32_t replica, std::string_view call, FunctionRef<void()> work) {
  const auto me = static_cast<std::size_t>(replica);
  std::unique_lock lock(mutex_);
  if (here_[me]) {
    throw StateError(std::string(call) + ": replica " + std::to_string(replica) +
                     " is in this call already");
  }
  here_[me] = true;
  ++arrived_;
  if (arrived_ < static_cast<std::int32_t>(here_.size())) {
    const std::uint64_t meeting = meeting_;
    if (!done_.wait_for(lock, timeout_, [&] { return meeting_ != meeting; })) {
      const std::string missing = absent();
      here_[me] = false;
      --arrived_;
      throw StateError(std::string(call) + ": replica " + std::to_string(replica) + " waited " +
                       std::to_string(timeout_.count()) + " ms for replica " + missing);
    }
    if (error_) std::rethrow_exception(error_);
    return;
  }
  error_ = nullptr;
  try {
    work();
  } catch (...) {
    error_ = std::current_exception();
  }
  std::fill(here_.begin(), here_.end(), false);
  arrived_ = 0;
  ++meeting_;
  done_.notify_all();
  if (error_) std::rethrow_exception(error_);
}

std::string Rendezvous::absent() const {
  std::string names;
  for (std::size_t i = 0; i < here_.size(); ++i) {
    if (!here_[i]) names += (names.empty() ? "" : ", ") + std::to_string(i);
  }
  return names;
}

}  // namespace embertable::engine
