#include "engine/schedule/queue_waits.h"

#include <algorithm>
#include <utility>

#include "embertable/errors.h"

namespace embertable::engine {
namespace {

std::string advice(std::chrono::milliseconds limit) {
  return limit.count() == 0 ? ", or give a timeout if another thread will" : "";
}

/// Returns "waited 200 ms, and ", or "" for a call that does not wait.
std::string after(std::chrono::milliseconds limit) {
  return limit.count() == 0 ? "" : "waited " + std::to_string(limit.count()) + " ms, and ";
}

}  // namespace

void QueueWaits::note_caller() {
  if (!several_threads_) several_threads_ = std::this_thread::get_id() != first_thread_;
}

/// Returns how long a call waits: not at all if no other thread could end the wait.
std::chrono::milliseconds QueueWaits::limit_of(Timeout timeout) const {
  return timeout.value_or(several_threads_ ? timeout_ : std::chrono::milliseconds(0));
}

void QueueWaits::hold(std::unique_lock<std::mutex>& lock, CoreRange cores, Timeout timeout) {
  if (!queues_.may_open(cores)) return await_room(lock, cores, timeout);
  queues_.hold(cores, std::this_thread::get_id());
}

void QueueWaits::await_room(std::unique_lock<std::mutex>& lock, CoreRange cores, Timeout timeout) {
  const std::thread::id me = std::this_thread::get_id();
  for (std::int32_t core = cores.first; core < cores.last; ++core) {
    if (queues_.filler(core) == me)
      throw StateError("enqueue: this thread is enqueueing for " + queues_.name_of(core) +
                       " already");
  }
  const std::chrono::milliseconds limit = limit_of(timeout);
  Waiting mine{.cores = cores, .thread = me, .for_room = limit.count() > 0};
  const bool waits = !stopped_ && (mine.for_room || queues_.is_held(cores));
  if (!waits) refuse(cores, limit);
  waiting_.push_back(&mine);
  Patience patience(mine.for_room ? limit : timeout_);
  patience.wait(mine.wake, lock, [&] { return mine.granted || mine.refused || mine.stopped; });
  if (mine.granted) return;
  if (!mine.refused) waiting_.erase(std::find(waiting_.begin(), waiting_.end(), &mine));
  if (stopped_) left_.notify_all();
  if (mine.stopped) throw StateError("enqueue: " + why_stopped_);
  patience.rethrow();
  refuse(cores, limit);
}

void QueueWaits::refuse(CoreRange cores, std::chrono::milliseconds limit) const {
  if (stopped_) throw StateError("enqueue: " + why_stopped_);
  for (std::int32_t core = cores.first; core < cores.last; ++core) {
    if (queues_.filler(core) != std::thread::id())
      throw StateError("enqueue: " + after(limit) + "another thread is still enqueueing for " +
                       queues_.name_of(core));
  }
  throw StateError("enqueue: " + after(limit) + "the queue of " + queues_.name_of(cores.first) +
                   " is full (" + std::to_string(queues_.capacity()) +
                   " batches); dequeue one first" + advice(limit));
}

void QueueWaits::let_go(CoreRange cores) {
  queues_.hold(cores, std::thread::id());
  serve();
  if (stopped_) left_.notify_all();
}

void QueueWaits::serve() {
  if (!waiting_.empty()) serve_waiting();
}

void QueueWaits::serve_waiting() {
  for (auto waiter = waiting_.begin(); waiter != waiting_.end();) {
    Waiting& next = **waiter;
    next.granted = !next.stopped && queues_.may_open(next.cores);
    next.refused = !next.stopped && !next.granted && !next.for_room && !queues_.is_held(next.cores);
    if (!next.granted && !next.refused) {
      ++waiter;
      continue;
    }
    if (next.granted) queues_.hold(next.cores, next.thread);
    next.wake.notify_one();
    waiter = waiting_.erase(waiter);
  }
}

void QueueWaits::await_batches(std::unique_lock<std::mutex>& lock, Timeout timeout,
                               std::optional<Patience>& patience) {
  const std::chrono::milliseconds limit = limit_of(timeout);
  if (!patience) patience.emplace(limit);
  const auto is_stopped = [&, stops = stops_] { return stopped_ || stops_ != stops; };
  ++consumers_;
  patience->wait(filled_, lock, [&] { return queues_.is_complete() || is_stopped(); });
  --consumers_;
  if (stopped_) left_.notify_all();
  if (is_stopped()) throw StateError("dequeue: " + why_stopped_);
  if (queues_.is_complete()) return;
  patience->rethrow();
  std::string missing;
  for (std::int32_t core = 0; core < queues_.cores(); ++core)
    if (!queues_.has_batch(core)) missing += (missing.empty() ? "" : ", ") + queues_.name_of(core);
  throw StateError("dequeue: " + after(limit) + "no batch is enqueued for " + missing +
                   "; enqueue one first" + advice(limit));
}

void QueueWaits::wake_consumer() {
  // One complete step can be dequeued by one thread.
  if (consumers_ > 0 && queues_.is_complete()) filled_.notify_one();
}

void QueueWaits::stop(std::string why) {
  stopped_ = true;
  ++stops_;
  why_stopped_ = std::move(why);
  for (Waiting* waiter : waiting_) {
    waiter->stopped = true;
    waiter->wake.notify_one();
  }
  filled_.notify_all();
}

void QueueWaits::await_departure(std::unique_lock<std::mutex>& lock) {
  left_.wait(lock, [&] {
    return waiting_.empty() && consumers_ == 0 && !queues_.is_held({0, queues_.cores()});
  });
}

}  // namespace embertable::engine
