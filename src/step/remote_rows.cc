#include "step/remote_rows.h"

#include <mutex>
#include <utility>

#include "step/fetch_remote_rows.h"

namespace embertable {

/// Memory that other hosts may read for as long as the process runs.
struct RemoteRows::Kept {
  Arena memory;
  Kept* before = nullptr;
};

RemoteRows::RemoteRows(Exchange& exchange, Messages& messages, Workers& workers, SimdLevel level)
    : exchange_(exchange),
      messages_(messages),
      workers_(workers),
      level_(level),
      router_(level),
      kept_(exchange.hosts() > 1 ? std::make_unique<Kept>() : nullptr) {}

RemoteRows::~RemoteRows() = default;

bool RemoteRows::asked_for(const HostStep& step) noexcept {
  if (ahead_ != nullptr && !exchange_.is_open(Channel::kAhead)) drop_questions();
  return ahead_ == &step;
}

bool RemoteRows::fetch(HostStep& step, bool training, bool has_next) {
  if (left_) {
    if (exchange_.is_open(Channel::kAhead))
      messages_.finish(Channel::kAhead, "dropped row numbers");
    left_ = false;
    kept_->memory.reset();
  }
  const bool asked = ahead_ == &step;
  if (!asked) ask(step, Channel::kStep);
  // The questions of another step, or of an earlier engine, may be on their way.
  const bool may_ask_ahead = has_next && (asked || !exchange_.is_open(Channel::kAhead));
  hear_questions(step, messages_, asked ? Channel::kAhead : Channel::kStep);
  if (training) check_update_sizes(step);
  const bool all_may = swap_rows(step, messages_, workers_, level_, may_ask_ahead);
  if (asked) ahead_ = nullptr;
  return all_may;
}

void RemoteRows::ask_ahead(HostStep& next, std::int64_t number) {
  ahead_ = &next;
  const std::int64_t running = messages_.step();
  messages_.set_step(number);
  try {
    ask(next, Channel::kAhead);
  } catch (...) {
    messages_.set_step(running);
    // Other hosts may read the questions as long as their round is open.
    if (!exchange_.is_open(Channel::kAhead)) drop_questions();
    throw;
  }
  messages_.set_step(running);
}

void RemoteRows::ask(HostStep& step, Channel channel) {
  router_.run(step, exchange_.host(), workers_);
  ask_for_rows(step, messages_, channel);
}

void RemoteRows::keep_questions() noexcept {
  static std::mutex mutex;
  static Kept* last = nullptr;  // nothing destroys what a round that is open may still write to
  if ((ahead_ == nullptr && !left_) || !exchange_.is_open(Channel::kAhead)) return;
  if (!left_) kept_->memory = std::move(ahead_->memory);
  const std::lock_guard lock(mutex);
  kept_->before = last;
  last = kept_.release();
}

void RemoteRows::drop_questions() noexcept {
  if (ahead_ == nullptr) return;
  put_rows_back(*ahead_, exchange_.host());
  ahead_ = nullptr;
}

void RemoteRows::leave_questions() noexcept {
  if (ahead_ == nullptr) return;  // nothing was asked, or it was left before
  left_ = exchange_.is_open(Channel::kAhead);
  if (left_) kept_->memory = std::move(ahead_->memory);
  ahead_ = nullptr;
}

}  // namespace embertable
