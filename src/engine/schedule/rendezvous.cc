#include "engine/schedule/rendezvous.h"

#include <memory>
#include <string>
#include <utility>

#include "embertable/errors.h"
#include "embertable/exchange.h"
#include "engine/schedule/patience.h"

namespace embertable::engine {
namespace {

/// Each thread throws a copy of its own of what says that the engine stops, because one may still
/// read it while another destroys the engine.
[[noreturn]] void rethrow(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const GivenUp& told) {
    throw GivenUp(told.host(), told.reason());
  } catch (const StateError& refusal) {
    throw StateError(refusal.what());
  }
}

}  // namespace

Rendezvous::Rendezvous(std::int32_t replicas, std::chrono::milliseconds timeout)
    : timeout_(timeout), here_(replicas) {}

void Rendezvous::meet(std::int32_t replica, std::string_view call, FunctionRef<void()> arrive,
                      FunctionRef<void()> work, FunctionRef<void()> leave) {
  std::unique_lock lock(mutex_);
  ++inside_;
  const auto go = [this](void*) {  // with the lock held
    --inside_;
    if (stopped_) left_.notify_all();
  };
  const std::unique_ptr<void, decltype(go)> present(this, go);
  if (here_[replica]) {
    throw StateError(std::string(call) + ": replica " + std::to_string(replica) +
                     " is in this call already");
  }
  arrive();
  here_[replica] = true;
  ++arrived_;
  if (everyone_is_here()) {
    finish(lock, work);
  } else {
    await_others(lock, replica, call);
  }
  here_[replica] = false;
  if (error_) rethrow(error_);
  leave();
}

/// Applies the timeout only until all have arrived; the work has no deadline.
void Rendezvous::await_others(std::unique_lock<std::mutex>& lock, std::int32_t replica,
                              std::string_view call) {
  const auto done = [this, meeting = meeting_] { return meeting_ != meeting; };
  const auto broken_off = [this, before = broken_off_] { return broken_off_ != before; };
  if (stopped_) break_off();
  Patience patience(timeout_);
  patience.wait(done_, lock, [&] { return done() || broken_off() || everyone_is_here(); });
  if (everyone_is_here()) done_.wait(lock, done);
  if (done()) return;
  const std::string missing = absent();
  here_[replica] = false;
  if (broken_off()) throw StateError(std::string(call) + ": " + why_stopped_);
  --arrived_;
  patience.rethrow();
  throw StateError(std::string(call) + ": replica " + std::to_string(replica) + " waited " +
                   std::to_string(timeout_.count()) + " ms for replica " + missing);
}

/// Ends the meeting. Its threads are still here until they notice, but belong to no meeting.
void Rendezvous::break_off() {
  ++broken_off_;
  arrived_ = 0;
}

/// Runs the work unlocked, so that a call from within it is refused instead of waiting for itself.
void Rendezvous::finish(std::unique_lock<std::mutex>& lock, FunctionRef<void()> work) {
  std::exception_ptr error;
  lock.unlock();
  try {
    work();
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  error_ = error;
  arrived_ = 0;
  ++meeting_;
  done_.notify_all();
}

void Rendezvous::stop(std::string why) {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  why_stopped_ = std::move(why);
  if (!everyone_is_here()) break_off();
  done_.notify_all();
}

void Rendezvous::resume() {
  const std::lock_guard lock(mutex_);
  stopped_ = false;
}

void Rendezvous::close() {
  stop("the engine is at its end");
  std::unique_lock lock(mutex_);
  left_.wait(lock, [this] { return inside_ == 0; });
}

std::string Rendezvous::absent() const {
  std::string names;
  for (std::int64_t i = 0; i < std::ssize(here_); ++i) {
    if (!here_[i]) names += (names.empty() ? "" : ", ") + std::to_string(i);
  }
  return names;
}

}  // namespace embertable::engine
