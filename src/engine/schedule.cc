#include "engine/schedule.h"

#include <algorithm>
#include <string>
#include <utility>

#include "embertable/errors.h"

namespace embertable::engine {
namespace {

std::string labelled(const ReplicaBatch& batch) {
  return batch.name.empty() ? "" : " '" + batch.name + "'";
}

}  // namespace

Schedule::Schedule(const Form& form)
    : form_(form),
      cores_(form.replicas * form.cores_per_replica),
      ring_(form.capacity),
      enqueued_(cores_),
      reader_(cores_) {
  awaiting_.reserve(2);
}

Step& Schedule::open(std::int32_t first, std::int32_t last, Timeout timeout) {
  std::unique_lock lock(mutex_);
  note_caller();
  if (may_open(first, last)) {
    hold(first, last, std::this_thread::get_id());
  } else {
    Waiting mine{first, last, std::this_thread::get_id()};
    await_room(lock, mine, timeout);
  }
  try {
    return open_step(first, last);
  } catch (...) {
    let_go(first, last);
    throw;
  }
}

Step& Schedule::open_step(std::int32_t first, std::int32_t last) {
  for (std::int32_t core = first + 1; core < last; ++core) {
    if (enqueued(core) != enqueued(first)) {
      throw StateError("enqueue: " + name_of(core) +
                       " has enqueued another number of batches than " + name_of(first) +
                       "; enqueue their batches one by one");
    }
  }
  Step*& step = at(enqueued(first));
  if (!step) step = take_locked();
  for (std::int32_t core = first; core < last; ++core) {
    ReplicaBatch& batch = step->replica[core];
    batch.bytes_before = batch.bytes();
  }
  return *step;
}

void Schedule::commit(std::int32_t first, std::int32_t last, bool training, std::string_view name) {
  const std::lock_guard lock(mutex_);
  const std::int64_t number = enqueued(first);
  Step& step = *at(number);
  for (std::int32_t other = 0; other < cores_; ++other) {
    const ReplicaBatch& batch = step.replica[other];
    if (enqueued(other) > number && batch.training != training) {
      throw StateError("enqueue: " + name_of(other) + "'s batch" + labelled(batch) +
                       " of this step is " + (training ? "an inference" : "a training") +
                       " batch; those of all replicas must be");
    }
  }
  for (std::int32_t core = first; core < last; ++core) {
    step.replica[core].training = training;
    step.replica[core].name = name;
  }
  for (std::int32_t core = first; core < last; ++core) ++enqueued(core);
  wake_consumer();
  let_go(first, last);
}

void Schedule::release(std::int32_t first, std::int32_t last) {
  const std::lock_guard lock(mutex_);
  let_go(first, last);
}

Step* Schedule::next_to_dequeue(bool sequential) {
  const std::lock_guard lock(mutex_);
  note_caller();
  const bool one_by_one = !form_.pipelined || sequential;
  const bool after_pipelined = awaiting_.size() == 1 && !awaiting_.front()->sequential;
  if (!awaiting_.empty() && (one_by_one || !after_pipelined))
    throw StateError("dequeue: " + first_awaiting());
  if (!is_complete()) return nullptr;
  Step* step = at(dequeued_);
  require_one_mode(*step);
  step->training = step->replica.front().training;
  step->sequential = one_by_one;
  return step;
}

void Schedule::require_one_mode(const Step& step) const {
  for (const ReplicaBatch& batch : step.replica) {
    if (batch.training != step.replica.front().training) {
      throw StateError(
          "dequeue: the next batches of the replicas must all be training or all inference "
          "batches; batch" +
          labelled(batch) + " is not as that of replica 0");
    }
  }
}

std::string Schedule::first_awaiting() const {
  return "the training batch" + labelled(awaiting_.front()->replica.front()) +
         " dequeued before still lacks its gradients; call apply_gradients first";
}

void Schedule::require_no_gradients_outstanding(std::string_view call) const {
  const std::lock_guard lock(mutex_);
  if (!awaiting_.empty()) throw StateError(std::string(call) + ": " + first_awaiting());
}

void Schedule::drop_dequeued() {
  const std::lock_guard lock(mutex_);
  free_.insert(free_.end(), awaiting_.begin(), awaiting_.end());
  awaiting_.clear();
  if (pending_) free_.push_back(std::exchange(pending_, nullptr));
}

void Schedule::drop_if_next(const Step* step) {
  const std::lock_guard lock(mutex_);
  if (!step || at(dequeued_) != step) return;
  free_.push_back(std::exchange(at(dequeued_), nullptr));
  ++dequeued_;
  serve_waiting();
}

void Schedule::dequeued() {
  const std::lock_guard lock(mutex_);
  Step* step = std::exchange(at(dequeued_), nullptr);
  ++dequeued_;
  if (step->training) {
    awaiting_.push_back(step);
  } else {
    free_.push_back(step);
  }
  serve_waiting();
  wake_consumer();
}

Step* Schedule::awaiting_gradients() {
  const std::lock_guard lock(mutex_);
  if (awaiting_.empty()) {
    throw StateError("apply_gradients: no dequeued training batch is waiting for gradients");
  }
  return awaiting_.front();
}

bool Schedule::next_update_is_due() const {
  const std::lock_guard lock(mutex_);
  return awaiting_.size() > 1 || awaiting_.front()->sequential;
}

void Schedule::gradients_came() {
  const std::lock_guard lock(mutex_);
  awaiting_.erase(awaiting_.begin());
}

Step* Schedule::take() {
  const std::lock_guard lock(mutex_);
  return take_locked();
}

Step* Schedule::take_locked() {
  if (free_.empty()) {
    auto step = std::make_unique<Step>();
    step->replica.resize(cores_);
    for (ReplicaBatch& batch : step->replica) batch.readers.resize(form_.features);
    step->host.resize(form_.hosts);
    all_.push_back(std::move(step));
    free_.reserve(all_.size());
    free_.push_back(all_.back().get());
  }
  Step* step = free_.back();
  free_.pop_back();
  step->buckets.clear();
  return step;
}

void Schedule::give_back(Step* step) {
  const std::lock_guard lock(mutex_);
  free_.push_back(step);
}

/// "replica 1", or "replica 1 (core 0)" where it has several.
std::string Schedule::name_of(std::int32_t core) const {
  const std::string replica = "replica " + std::to_string(core / form_.cores_per_replica);
  if (form_.cores_per_replica == 1) return replica;
  return replica + " (core " + std::to_string(core % form_.cores_per_replica) + ")";
}

bool Schedule::is_being_filled(const Step& step, std::int32_t core) const {
  const auto c = static_cast<std::size_t>(core);
  const Step* next = ring_[static_cast<std::size_t>(enqueued_[c]) % ring_.size()];
  return reader_[c] != std::thread::id() && next == &step;
}

std::int64_t Schedule::scratch_bytes() const {
  const std::lock_guard lock(mutex_);
  std::int64_t bytes = 0;
  for (const auto& step : all_) {
    for (std::int32_t core = 0; core < cores_; ++core) {
      const ReplicaBatch& batch = step->replica[core];
      bytes += is_being_filled(*step, core) ? batch.bytes_before : batch.bytes();
    }
    for (const HostStep& host : step->host) bytes += host.memory.bytes();
    bytes += step->gradient_memory.bytes();
  }
  return bytes;
}

}  // namespace embertable::engine
