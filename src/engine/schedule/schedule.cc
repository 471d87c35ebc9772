#include "engine/schedule/schedule.h"

#include <algorithm>
#include <utility>

#include "embertable/errors.h"
#include "embertable/strategy.h"

namespace embertable::engine {
namespace {

std::string labelled(const CoreBatch& batch) {
  return batch.name.empty() ? "" : " '" + batch.name + "'";
}

[[noreturn]] void refuse_timeout(std::string_view call, std::chrono::milliseconds timeout) {
  throw ValueError(std::string(call) + ": timeout must be >= 0 ms, got " +
                   std::to_string(timeout.count()));
}

}  // namespace

Schedule::Timeout Schedule::checked_timeout(std::string_view call, const Timeout& timeout) {
  if (timeout && timeout->count() < 0) refuse_timeout(call, *timeout);
  return timeout ? std::min(*timeout, StrategyOptions::kMaxTimeout) : timeout;
}

Schedule::Schedule(const Form& form)
    : form_(form),
      queues_(form.replicas * form.cores_per_replica, form.cores_per_replica, form.capacity),
      waits_(queues_, form.timeout) {
  awaiting_.reserve(2);
}

/// Throws because two cores that enqueue together have enqueued different numbers of batches.
void Schedule::refuse_number(std::int32_t core, std::int32_t other) const {
  throw StateError("enqueue: " + queues_.name_of(core) +
                   " has enqueued another number of batches than " + queues_.name_of(other) +
                   "; enqueue their batches one by one");
}

Step& Schedule::open(CoreRange cores, Timeout timeout) {
  std::unique_lock lock(mutex_);
  waits_.note_caller();
  waits_.hold(lock, cores, timeout);
  try {
    for (std::int32_t core = cores.first + 1; core < cores.last; ++core)
      if (queues_.enqueued(core) != queues_.enqueued(cores.first)) refuse_number(core, cores.first);
    Step*& step = queues_.next_of(cores.first);
    if (!step) step = take_locked();
    for (std::int32_t core = cores.first; core < cores.last; ++core) {
      CoreBatch& batch = step->core[core];
      batch.bytes_before = batch.bytes();
    }
    return *step;
  } catch (...) {
    waits_.let_go(cores);
    throw;
  }
}

/// Throws because the batch of a core, which is enqueued, has the step's mode and another's has
/// not.
void Schedule::refuse_mode(const Step& step, std::int32_t core) const {
  throw StateError("enqueue: " + queues_.name_of(core) + "'s batch" + labelled(step.core[core]) +
                   " of this step is " + (step.training ? "a training" : "an inference") +
                   " batch; those of all replicas must be");
}

void Schedule::commit(CoreRange cores, bool training, std::string_view name) {
  const std::lock_guard lock(mutex_);
  const std::int64_t number = queues_.enqueued(cores.first);
  Step& step = *queues_.next_of(cores.first);
  for (std::int32_t other = 0; other < queues_.cores(); ++other)
    if (queues_.enqueued(other) > number && step.training != training) refuse_mode(step, other);
  step.training = training;
  for (std::int32_t core = cores.first; core < cores.last; ++core) step.core[core].name = name;
  queues_.count_batches(cores);
  waits_.wake_consumer();
  waits_.let_go(cores);
}

void Schedule::release(CoreRange cores) {
  const std::lock_guard lock(mutex_);
  const std::int64_t number = queues_.enqueued(cores.first);
  Step& step = *queues_.next_of(cores.first);
  bool shared = false;
  for (std::int32_t core = 0; core < queues_.cores(); ++core) {
    const bool other = core < cores.first || core >= cores.last;
    shared =
        shared || (other && (queues_.enqueued(core) > number || queues_.is_filling(step, core)));
  }
  if (!shared) step.cuts.clear();  // a batch that is refused does not decide for the next one
  waits_.let_go(cores);
}

Step* Schedule::next_to_dequeue(bool sequential) {
  const std::lock_guard lock(mutex_);
  waits_.note_caller();
  const bool one_by_one = !form_.pipelined || sequential;
  const bool after_pipelined = awaiting_.size() == 1 && !awaiting_.front()->sequential;
  if (!awaiting_.empty() && (one_by_one || !after_pipelined))
    throw StateError("dequeue: " + first_awaiting());
  if (!queues_.is_complete()) return nullptr;
  Step* step = queues_.front();
  step->sequential = one_by_one;
  return step;
}

Step* Schedule::following() const {
  const std::lock_guard lock(mutex_);
  return queues_.second();
}

void Schedule::await_batches(Timeout timeout, std::optional<Patience>& patience) {
  std::unique_lock lock(mutex_);
  waits_.await_batches(lock, timeout, patience);
}

void Schedule::pass_on() {
  const std::lock_guard lock(mutex_);
  waits_.wake_consumer();
}

std::string Schedule::first_awaiting() const {
  return "the training batch" + labelled(awaiting_.front()->core.front()) +
         " dequeued before still lacks its gradients; call apply_gradients first, or "
         "drop_dequeued_batches";
}

std::int64_t Schedule::lacking_gradients() const {
  const std::lock_guard lock(mutex_);
  return std::ssize(awaiting_);
}

void Schedule::require_no_gradients_outstanding(std::string_view call) const {
  const std::lock_guard lock(mutex_);
  if (!awaiting_.empty()) throw StateError(std::string(call) + ": " + first_awaiting());
}

bool Schedule::awaits_refused() const {
  const std::lock_guard lock(mutex_);
  return !awaiting_.empty() && awaiting_.front()->refused;
}

std::int64_t Schedule::drop_dequeued() {
  const std::lock_guard lock(mutex_);
  const std::int64_t steps = std::ssize(awaiting_);
  free_.insert(free_.end(), awaiting_.begin(), awaiting_.end());
  awaiting_.clear();
  return steps;
}

std::int64_t Schedule::drop_unmatched() {
  const std::lock_guard lock(mutex_);
  waits_.note_caller();
  require_no_filler("drop_unmatched_batches");
  const std::int64_t batches = queues_.remove_unmatched(free_);
  waits_.serve();
  return batches;
}

std::int64_t Schedule::drop_queued(std::optional<std::int64_t> steps,
                                   FunctionRef<void()> forget_oldest) {
  const std::lock_guard lock(mutex_);
  waits_.note_caller();
  require_no_filler("drop_queued_batches");
  const std::int64_t queued = queues_.queued(), dropped = std::min(queued, steps.value_or(queued));
  if (dropped > 0 && dropped == queued) forget_oldest();
  queues_.remove_newest(dropped, free_);
  waits_.serve();
  return dropped;
}

std::int64_t Schedule::queued() const {
  const std::lock_guard lock(mutex_);
  return queues_.queued();
}

void Schedule::require_no_filler(std::string_view call) const {
  for (std::int32_t core = 0; core < queues_.cores(); ++core)
    if (queues_.is_held({core, core + 1}))
      throw StateError(std::string(call) + ": another thread enqueues a batch of " +
                       queues_.name_of(core));
}

void Schedule::dequeued() {
  const std::lock_guard lock(mutex_);
  Step* step = queues_.pop();
  (step->training ? awaiting_ : free_).push_back(step);
  waits_.serve();
  waits_.wake_consumer();
}

Schedule::Awaiting Schedule::awaiting_gradients() const {
  const std::lock_guard lock(mutex_);
  if (awaiting_.empty()) {
    throw StateError("apply_gradients: no dequeued training batch is waiting for gradients");
  }
  return {awaiting_.front(), awaiting_.size() > 1 || awaiting_.front()->sequential};
}

void Schedule::gradients_came(bool updated) {
  const std::lock_guard lock(mutex_);
  if (updated) free_.push_back(awaiting_.front());
  awaiting_.erase(awaiting_.begin());
}

Step* Schedule::take() {
  const std::lock_guard lock(mutex_);
  return take_locked();
}

void Schedule::add_free_step() {
  auto step = std::make_unique<Step>();
  step->core.resize(queues_.cores());
  for (CoreBatch& batch : step->core) batch.features.resize(form_.features);
  step->host.resize(form_.hosts);
  step->shape.reserve(form_.replicas * form_.features);
  all_.push_back(std::move(step));
  free_.reserve(all_.size());
  free_.push_back(all_.back().get());
}

Step* Schedule::take_locked() {
  if (free_.empty()) add_free_step();
  Step* step = free_.back();
  free_.pop_back();
  step->cuts.clear();
  step->refused = false;
  for (HostStep& host : step->host)
    for (TableRun& table : host.tables) table.route.translated = false;  // it gets new plans
  return step;
}

void Schedule::give_back(Step* step) {
  const std::lock_guard lock(mutex_);
  free_.push_back(step);
}

void Schedule::note() {
  const std::lock_guard lock(mutex_);
  waits_.note_caller();
}

void Schedule::stop(std::string why) {
  const std::lock_guard lock(mutex_);
  waits_.stop(std::move(why));
}

void Schedule::resume() {
  const std::lock_guard lock(mutex_);
  waits_.resume();
}

void Schedule::close() {
  stop("the engine is at its end");
  std::unique_lock lock(mutex_);
  waits_.await_departure(lock);
}

std::int64_t Schedule::scratch_bytes() const {
  const std::lock_guard lock(mutex_);
  std::int64_t bytes = 0;
  for (const auto& step : all_) {
    for (std::int32_t core = 0; core < queues_.cores(); ++core) {
      const CoreBatch& batch = step->core[core];
      bytes += queues_.is_filling(*step, core) ? batch.bytes_before : batch.bytes();
    }
    for (const HostStep& host : step->host) bytes += host.memory.bytes();
    bytes += step->gradient_memory.bytes();
  }
  return bytes;
}

}  // namespace embertable::engine
