// How threads wait for each other at the queues.
#include <algorithm>

#include "embertable/errors.h"
#include "engine/schedule.h"

namespace embertable::engine {

/// The one that made the schedule counts as the first.
void Schedule::note_caller() {
  if (!several_threads_) several_threads_ = std::this_thread::get_id() != first_thread_;
}

void Schedule::note() {
  const std::lock_guard lock(mutex_);
  note_caller();
}

/// None where nobody could end the wait.
std::chrono::milliseconds Schedule::limit_of(Timeout timeout) const {
  return timeout.value_or(several_threads_ ? form_.timeout : std::chrono::milliseconds(0));
}

/// Whether a thread enqueues there.
bool Schedule::is_held(std::int32_t first, std::int32_t last) {
  for (std::int32_t core = first; core < last; ++core)
    if (reader(core) != std::thread::id()) return true;
  return false;
}

/// Whether nobody else enqueues there and, as far as the cores agree on their step, there is room.
bool Schedule::may_open(std::int32_t first, std::int32_t last) {
  if (is_held(first, last)) return false;
  bool room = true;
  for (std::int32_t core = first; core < last; ++core) {
    if (enqueued(core) != enqueued(first)) return true;  // refused by whoever opens
    room &= enqueued(core) - dequeued_ < form_.capacity;
  }
  return room;
}

void Schedule::hold(std::int32_t first, std::int32_t last, std::thread::id thread) {
  for (std::int32_t core = first; core < last; ++core) reader(core) = thread;
}

void Schedule::let_go(std::int32_t first, std::int32_t last) {
  hold(first, last, std::thread::id());
  serve_waiting();
  if (stopped_) left_.notify_all();
}

void Schedule::serve_waiting() {
  for (auto waiter = waiting_.begin(); waiter != waiting_.end();) {
    Waiting& next = **waiter;
    next.granted = !next.stopped && may_open(next.first, next.last);
    next.refused =
        !next.stopped && !next.granted && !next.for_room && !is_held(next.first, next.last);
    if (!next.granted && !next.refused) {
      ++waiter;
      continue;
    }
    if (next.granted) hold(next.first, next.last, next.thread);
    next.wake.notify_one();
    waiter = waiting_.erase(waiter);
  }
}

void Schedule::await_room(std::unique_lock<std::mutex>& lock, Waiting& mine, Timeout timeout) {
  for (std::int32_t core = mine.first; core < mine.last; ++core) {
    if (reader(core) == mine.thread)
      throw StateError("enqueue: this thread is enqueueing for " + name_of(core) + " already");
  }
  const std::chrono::milliseconds limit = limit_of(timeout);
  mine.for_room = limit.count() > 0;
  const bool waits = !stopped_ && (mine.for_room || is_held(mine.first, mine.last));
  if (!waits) refuse_to_open(mine.first, mine.last, limit);
  waiting_.push_back(&mine);
  mine.wake.wait_for(lock, mine.for_room ? limit : form_.timeout,
                     [&] { return mine.granted || mine.refused || mine.stopped; });
  if (mine.granted) return;
  if (!mine.refused) waiting_.erase(std::find(waiting_.begin(), waiting_.end(), &mine));
  if (stopped_) left_.notify_all();
  if (mine.stopped) throw StateError("enqueue: " + why_stopped_);
  refuse_to_open(mine.first, mine.last, limit);
}

std::string Schedule::advice(std::chrono::milliseconds limit) {
  return limit.count() == 0 ? ", or give a timeout if another thread will" : "";
}

/// "waited 200 ms, and ", or nothing for a call that does not wait.
std::string Schedule::after(std::chrono::milliseconds limit) {
  return limit.count() == 0 ? "" : "waited " + std::to_string(limit.count()) + " ms, and ";
}

void Schedule::refuse_to_open(std::int32_t first, std::int32_t last,
                              std::chrono::milliseconds limit) {
  if (stopped_) throw StateError("enqueue: " + why_stopped_);
  for (std::int32_t core = first; core < last; ++core) {
    if (reader(core) != std::thread::id())
      throw StateError("enqueue: " + after(limit) + "another thread is still enqueueing for " +
                       name_of(core));
  }
  throw StateError("enqueue: " + after(limit) + "the queue of " + name_of(first) + " is full (" +
                   std::to_string(form_.capacity) + " batches); dequeue one first" + advice(limit));
}

bool Schedule::is_complete() const {
  return std::all_of(enqueued_.begin(), enqueued_.end(),
                     [&](std::int64_t batches) { return batches > dequeued_; });
}

void Schedule::await_batches(Timeout timeout, std::optional<Deadline>& deadline) {
  std::unique_lock lock(mutex_);
  const std::chrono::milliseconds limit = limit_of(timeout);
  if (!deadline) deadline = std::chrono::steady_clock::now() + limit;
  const auto is_stopped = [&, stops = stops_] { return stopped_ || stops_ != stops; };
  ++consumers_;
  filled_.wait_until(lock, *deadline, [&] { return is_complete() || is_stopped(); });
  --consumers_;
  if (stopped_) left_.notify_all();
  if (is_stopped()) throw StateError("dequeue: " + why_stopped_);
  if (is_complete()) return;
  std::string missing;
  for (std::int32_t core = 0; core < cores_; ++core)
    if (enqueued(core) <= dequeued_) missing += (missing.empty() ? "" : ", ") + name_of(core);
  throw StateError("dequeue: " + after(limit) + "no batch is enqueued for " + missing +
                   "; enqueue one first" + advice(limit));
}

/// One, since there is one batch for it.
void Schedule::wake_consumer() {
  if (consumers_ > 0 && is_complete()) filled_.notify_one();
}

void Schedule::pass_on() {
  const std::lock_guard lock(mutex_);
  wake_consumer();
}

void Schedule::stop(std::string why) {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  ++stops_;
  why_stopped_ = std::move(why);
  for (Waiting* waiter : waiting_) {
    waiter->stopped = true;
    waiter->wake.notify_one();
  }
  filled_.notify_all();
}

void Schedule::resume() {
  const std::lock_guard lock(mutex_);
  stopped_ = false;
}

void Schedule::close() {
  stop("the engine is at its end");
  std::unique_lock lock(mutex_);
  left_.wait(lock, [&] { return waiting_.empty() && consumers_ == 0 && !is_held(0, cores_); });
}

}  // namespace embertable::engine
