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

Schedule::Schedule(std::int32_t replicas, std::int64_t features, std::int32_t hosts,
                   std::int32_t capacity, bool pipelined)
    : replicas_(replicas),
      features_(features),
      hosts_(hosts),
      capacity_(capacity),
      pipelined_(pipelined),
      ring_(static_cast<std::size_t>(capacity)),
      enqueued_(static_cast<std::size_t>(replicas)) {
  awaiting_.reserve(2);
}

Step* Schedule::open(std::int32_t replica) {
  const std::lock_guard lock(mutex_);
  const std::int64_t number = enqueued_[static_cast<std::size_t>(replica)];
  if (number - dequeued_ >= capacity_) {
    throw StateError("enqueue: the queue of replica " + std::to_string(replica) + " is full (" +
                     std::to_string(capacity_) + " batches); dequeue one first");
  }
  Step*& step = ring_[static_cast<std::size_t>(number) % ring_.size()];
  if (!step) step = take_locked();
  return step;
}

void Schedule::commit(std::int32_t replica, bool training, std::string_view name) {
  const std::lock_guard lock(mutex_);
  std::int64_t& number = enqueued_[static_cast<std::size_t>(replica)];
  Step& step = *queued(number);
  for (std::int32_t other = 0; other < replicas_; ++other) {
    const ReplicaBatch& batch = step.replica[static_cast<std::size_t>(other)];
    if (enqueued_[static_cast<std::size_t>(other)] > number && batch.training != training) {
      throw StateError("enqueue: replica " + std::to_string(other) + "'s batch" + labelled(batch) +
                       " of this step is " + (training ? "an inference" : "a training") +
                       " batch; those of all replicas must be");
    }
  }
  step.replica[static_cast<std::size_t>(replica)].training = training;
  step.replica[static_cast<std::size_t>(replica)].name = name;
  ++number;
}

Step* Schedule::next_to_dequeue() {
  const std::lock_guard lock(mutex_);
  std::string empty;
  for (std::int32_t replica = 0; replica < replicas_; ++replica) {
    if (enqueued_[static_cast<std::size_t>(replica)] <= dequeued_)
      empty += (empty.empty() ? "" : ", ") + std::to_string(replica);
  }
  if (!empty.empty()) throw StateError("dequeue: no batch is enqueued for replica " + empty);
  if (awaiting_.size() >= (pipelined_ ? 2u : 1u)) {
    throw StateError("dequeue: " + first_awaiting());
  }
  Step* step = queued(dequeued_);
  for (const ReplicaBatch& batch : step->replica) {
    if (batch.training != step->replica.front().training) {
      throw StateError(
          "dequeue: the next batches of the replicas must all be training or all inference "
          "batches; batch" +
          labelled(batch) + " is not as that of replica 0");
    }
  }
  step->training = step->replica.front().training;
  return step;
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
  if (!step || queued(dequeued_) != step) return;
  free_.push_back(
      std::exchange(ring_[static_cast<std::size_t>(dequeued_) % ring_.size()], nullptr));
  ++dequeued_;
}

void Schedule::dequeued() {
  const std::lock_guard lock(mutex_);
  Step* step = std::exchange(ring_[static_cast<std::size_t>(dequeued_) % ring_.size()], nullptr);
  ++dequeued_;
  if (step->training) {
    awaiting_.push_back(step);
  } else {
    free_.push_back(step);
  }
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
  return !pipelined_ || awaiting_.size() > 1;
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
    step->replica.resize(static_cast<std::size_t>(replicas_));
    for (ReplicaBatch& batch : step->replica)
      batch.readers.resize(static_cast<std::size_t>(features_));
    step->host.resize(static_cast<std::size_t>(hosts_));
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

std::int64_t Schedule::scratch_bytes() const {
  const std::lock_guard lock(mutex_);
  std::int64_t bytes = 0;
  for (const auto& step : all_) {
    for (const ReplicaBatch& batch : step->replica) bytes += batch.memory.bytes();
    for (const HostStep& host : step->host) bytes += host.memory.bytes();
    bytes += step->gradient_memory.bytes();
  }
  return bytes;
}

}  // namespace embertable::engine
