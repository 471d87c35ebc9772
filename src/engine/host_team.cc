#include "engine/host_team.h"

#include <string>
#include <system_error>

#include "base/float_environment.h"
#include "embertable/errors.h"

namespace embertable::engine {

HostTeam::HostTeam(std::vector<std::unique_ptr<Host>> hosts) : hosts_(std::move(hosts)) {
  failures_.resize(hosts_.size());
  threads_->reserve(hosts_.size());  // no thread runs yet if that throws
  try {
    for (std::int32_t i = 1; i < size(); ++i) threads_->emplace_back([this, i] { work(i); });
  } catch (const std::system_error& error) {
    end_threads();
    throw IoError("hosts: starting thread " + std::to_string(threads_->size() + 1) + " of " +
                  std::to_string(size() - 1) + " failed: " + error.code().message());
  } catch (...) {
    end_threads();
    throw;
  }
}

HostTeam::~HostTeam() { end_threads(); }

void HostTeam::end_threads() noexcept {
  if (home_.forked()) {  // a child has none of the threads: it can neither join nor detach them
    [[maybe_unused]] auto* const kept = threads_.release();
    return;
  }
  closing_ = true;
  round_.fetch_add(1);
  round_.notify_all();
  for (std::thread& thread : *threads_) thread.join();
}

void HostTeam::run(FunctionRef<void(Host&)> body) {
  if (host(0).is_alone()) return body(host(0));  // nobody need be told of an error
  body_ = &body;
  running_ = size();
  round_.fetch_add(1);
  round_.notify_all();
  run_one(0);
  for (std::int32_t left; (left = running_.load()) != 0;) running_.wait(left);
  if (const std::exception_ptr cause = take_cause()) std::rethrow_exception(cause);
}

/// Returns the error to throw, null if there is none, and forgets all.
std::exception_ptr HostTeam::take_cause() noexcept {
  std::exception_ptr cause, echo;
  for (Failure& failure : failures_) {
    std::exception_ptr& first = failure.is_echo ? echo : cause;
    if (!first) first = failure.error;
    failure = {};
  }
  return cause ? cause : echo;
}

void HostTeam::work(std::int32_t index) {
  for (std::uint64_t seen = 0;;) {
    round_.wait(seen);
    seen = round_.load();
    if (closing_) return;
    run_one(index);
  }
}

void HostTeam::run_one(std::int32_t index) {
  const FloatEnvironment ours;
  try {
    (*body_)(host(index));
    host(index).agree();
  } catch (const GivenUp&) {
    failures_[index] = {std::current_exception(), true};
  } catch (const std::exception& error) {
    fail(index, error.what());
  } catch (...) {
    fail(index, "unknown error");
  }
  if (running_.fetch_sub(1) == 1) running_.notify_all();
}

/// Keeps the exception that is being handled, and tells the other hosts.
void HostTeam::fail(std::int32_t index, const char* reason) noexcept {
  failures_[index] = {std::current_exception(), false};
  try {
    host(index).abort(reason);
  } catch (...) {  // the error that is kept says more than one about telling the others
  }
}

}  // namespace embertable::engine
