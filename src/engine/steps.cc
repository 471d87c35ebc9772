#include <algorithm>

#include "base/float_environment.h"
#include "embertable/errors.h"
#include "embertable/tensorflow/sequential_scope.h"
#include "engine/core.h"

namespace embertable::engine {

std::int64_t Core::activation_floats(Step& step, std::int32_t core, std::int64_t feature) const {
  const auto table = static_cast<std::size_t>(assembly_.table_of[feature]);
  return step.plan(core, feature).outputs * assembly_.tables[table].config.dim;
}

/// S + [dim], those of a replica's cores one after the other on axis 0.
Shape Core::activation_shape(Step& step, std::int32_t replica, std::int64_t feature) const {
  const auto table = static_cast<std::size_t>(assembly_.table_of[feature]);
  const std::int32_t first = replica * cores_per_replica_;
  Shape shape = step.reader(first, feature).output_shape();
  for (std::int32_t c = first + 1; c < first + cores_per_replica_; ++c)
    shape = shape.with_leading(shape[0] + step.reader(c, feature).output_shape()[0]);
  return shape.append(assembly_.tables[table].config.dim);
}

std::span<const Shape> Core::activation_shapes(Step& step) {
  activation_shapes_.clear();
  for (std::int32_t r = 0; r < replicas_; ++r)
    for (std::int64_t i = 0; i < features_.size(); ++i)
      activation_shapes_.push_back(activation_shape(step, r, i));
  return activation_shapes_;
}

/// Each core's part of its replica's activations.
std::span<const std::span<float>> Core::values_by_core(Step& step,
                                                       std::span<const std::span<float>> out) {
  if (cores_per_replica_ == 1) return out;
  core_values_.resize(cores_ * features_.size());
  for (std::int32_t r = 0; r < replicas_; ++r) {
    for (std::int64_t i = 0; i < features_.size(); ++i) {
      std::span<float> rest = out[r * features_.size() + i];
      for (std::int32_t c = r * cores_per_replica_; c < (r + 1) * cores_per_replica_; ++c) {
        const auto floats = static_cast<std::size_t>(activation_floats(step, c, i));
        core_values_[c * features_.size() + i] = rest.first(floats);
        rest = rest.subspan(floats);
      }
    }
  }
  return core_values_;
}

/// The right to step for as long as the lock lives, in an engine that can.
std::unique_lock<StepMutex> Core::lock_steps(std::string_view call) {
  require_built(call);
  require_home(call);  // before a lock that a thread of the parent may have held
  std::unique_lock lock(stepping_);
  require_sound(call);
  return lock;
}

void Core::fail(std::string when_and_why) {
  const std::lock_guard lock(failing_);
  failed_ = std::move(when_and_why);
  const std::string why = "the engine failed " + failed_;
  schedule_.stop(why);
  at_dequeue_.stop(why);
  at_apply_.stop(why);
}

void Core::fail_in_step(const char* why) { fail(std::string("in an earlier step: ") + why); }

/// A lookup of all hosts. Changes no row; throws what a host threw. With others that is final: they
/// may have gone on.
void Core::forward(Step& step, std::span<const std::span<float>> out) {
  Tables& rows = tables();
  const auto failed = [&](const char* why) {
    take_back(step);
    if (hosts_ > 1) fail_in_step(why);
  };
  const std::span<const std::span<float>> values = values_by_core(step, out);
  try {
    team_->run([&](Host& host) { host.forward(rows, step, values); });
  } catch (const std::exception& error) {
    failed(error.what());
    throw;
  } catch (...) {
    failed("unknown error");
    throw;
  }
  add_up_statistics();
}

/// Alone, a host's forward leaves no trace but in the step's cursors. With others the plans speak
/// of their messages: the step cannot be looked up again.
void Core::take_back(Step& step) {
  if (hosts_ > 1) {
    spent_ = &step;
    return;
  }
  for (std::int32_t c = 0; c < cores_; ++c)
    for (std::int64_t i = 0; i < features_.size(); ++i) step.reader(c, i).recount(level_);
}

/// The forward of a queued step, and the update that waited for it.
void Core::forward_and_flush(Step& step, std::span<const std::span<float>> out) {
  if (!step.training || step.sequential) flush();
  forward(step, out);
  try {
    flush();
  } catch (...) {
    take_back(step);
    throw;
  }
}

/// An update of all hosts; a failure in its middle is final.
void Core::update(Step& step) {
  Tables& rows = tables();
  try {
    team_->run([&](Host& host) { host.backward(rows, step, step.rates, steps_ + 1); });
  } catch (const std::exception& error) {
    fail_in_step(error.what());
    throw;
  } catch (...) {
    fail_in_step("unknown error");
    throw;
  }
  summed_step_ = ++steps_;
  for (std::size_t t = 0; t < unique_share_.size(); ++t)
    unique_share_[t].store(team_->host(0).unique_share(static_cast<std::int64_t>(t)),
                           std::memory_order_relaxed);
  add_up_statistics();
}

/// Host 0's times, everybody's counts.
void Core::add_up_statistics() {
  statistics_ = team_->host(0).statistics();
  for (std::int32_t h = 1; h < team_->size(); ++h) {
    for (std::size_t t = 0; t < statistics_.tables.size(); ++t) {
      const StepStatistics::Table& part = team_->host(h).statistics().tables[t];
      StepStatistics::Table& sum = statistics_.tables[t];
      sum.entries += part.entries;
      sum.unique_rows += part.unique_rows;
      sum.rows_touched += part.rows_touched;
      sum.empty_rows += part.empty_rows;
      sum.buckets += part.buckets;
      sum.dropped_ids += part.dropped_ids;
      sum.truncated_entries += part.truncated_entries;
    }
  }
}

void Core::flush() {
  if (Step* pending = schedule_.pending()) {
    update(*pending);
    schedule_.set_pending(nullptr);
    schedule_.give_back(pending);
  }
}

Tables& Core::settled_tables(std::string_view call) {
  const auto lock = lock_steps(call);
  Tables& rows = held_tables();
  if (&rows == tables_.get()) {
    flush();
  } else {
    require_alike(rows, call);
    rows.settle();
  }
  return rows;
}

Schedule::Timeout Core::checked_timeout(std::string_view call, const Schedule::Timeout& timeout) {
  if (timeout && timeout->count() < 0) {
    throw ValueError(std::string(call) + ": timeout must be >= 0 ms, got " +
                     std::to_string(timeout->count()));
  }
  return timeout ? std::min(*timeout, StrategyOptions::kMaxTimeout) : timeout;
}

/// Looks up the oldest queued step, once there is one. What waits holds no lock.
void Core::take_next_step(const DequeueOptions& options, bool sequential,
                          FunctionRef<void(Step&)> look_up) {
  const Schedule::Timeout timeout = checked_timeout("dequeue", options.timeout);
  std::optional<Schedule::Deadline> deadline;
  for (;; schedule_.await_batches(timeout, deadline)) {
    try {
      const auto lock = lock_steps("dequeue");
      tables();
      Step* step = schedule_.next_to_dequeue(sequential);
      if (!step) continue;
      look_up(*step);
      return schedule_.dequeued();
    } catch (...) {
      schedule_.pass_on();
      throw;
    }
  }
}

Activations Core::dequeue(const DequeueOptions& options) {
  require_accelerated("dequeue");
  const FloatEnvironment ours;
  ActivationBuffer* buffer = nullptr;
  take_next_step(options, SequentialScope::active(),
                 [&](Step& step) { buffer = look_up_step(step); });
  return Activations(buffer, 0, replicas_);
}

ActivationBuffer* Core::look_up_step(Step& step) {
  ActivationBuffer* buffer = pool_->lend(features_.structure(), replicas_, activation_shapes(step));
  try {
    forward_and_flush(step, buffer->values);
  } catch (...) {
    ActivationPool::give_back(buffer);
    throw;
  }
  return buffer;
}

void Core::dequeue(std::span<const std::span<float>> out, const DequeueOptions& options) {
  require_accelerated("dequeue");
  const FloatEnvironment ours;
  take_next_step(options, SequentialScope::active(), [&](Step& step) {
    check_outputs(step, out);
    forward_and_flush(step, out);
  });
}

void Core::check_outputs(Step& step, std::span<const std::span<float>> out) {
  const std::span<const Shape> shapes = activation_shapes(step);
  if (out.size() != shapes.size()) {
    throw ValueError("dequeue: out must have one span for each of " +
                     std::to_string(shapes.size()) + " activations, got " +
                     std::to_string(out.size()));
  }
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (static_cast<std::int64_t>(out[i].size()) != shapes[i].num_elements()) {
      const auto feature = static_cast<std::int64_t>(i) % features_.size();
      throw ValueError("feature '" + features_.path(feature) + "': the activation has shape " +
                       shapes[i].to_string() + ", out has " + std::to_string(out[i].size()) +
                       " floats");
    }
  }
}

Activations Core::dequeue(std::int32_t replica, const DequeueOptions& options) {
  require_accelerated("dequeue");
  require_built("dequeue");
  require_home("dequeue");
  require_sound("dequeue");
  checked_timeout("dequeue", options.timeout);
  schedule_.note();
  Activations mine;
  at_dequeue_.meet(
      replica, "dequeue", [&] { sequential_[replica] = SequentialScope::active(); },
      [&] {
        const FloatEnvironment ours;
        const bool sequential =
            std::any_of(sequential_.begin(), sequential_.end(), [](std::uint8_t s) { return s; });
        take_next_step(options, sequential, [&](Step& step) { lent_ = look_up_step(step); });
        lent_->holders = replicas_;
      },
      [&] { mine = Activations(lent_, replica, 1); });
  return mine;
}

void Core::update_or_defer(Step& step) {
  if (schedule_.next_update_is_due()) {
    update(step);
    schedule_.gradients_came();
    schedule_.give_back(&step);
  } else {
    schedule_.gradients_came();
    schedule_.set_pending(&step);
  }
  ++taken_;
}

void Core::apply_gradients(std::span<const Nested<Gradient>> gradients) {
  require_accelerated("apply_gradients");
  const FloatEnvironment ours;
  const auto lock = lock_steps("apply_gradients");
  tables();
  check_gradient_count(gradients);
  for (const Nested<Gradient>& tree : gradients)
    assert_same_structure(features_.structure(), tree.structure(), "gradients");
  Step& step = *schedule_.awaiting_gradients();
  const auto given = [&](std::int32_t r) -> const Nested<Gradient>& { return gradients[r]; };
  take_step(step, given, !schedule_.next_update_is_due());
  update_or_defer(step);
}

void Core::apply_gradients(std::int32_t replica, const Nested<Gradient>& gradients) {
  require_accelerated("apply_gradients");
  require_built("apply_gradients");
  require_home("apply_gradients");
  require_sound("apply_gradients");
  assert_same_structure(features_.structure(), gradients.structure(), "gradients");
  schedule_.awaiting_gradients();
  at_apply_.meet(
      replica, "apply_gradients", [&] { given_[replica] = &gradients; },
      [&] {
        const FloatEnvironment ours;
        const auto lock = lock_steps("apply_gradients");
        tables();
        Step& step = *schedule_.awaiting_gradients();
        const auto given = [&](std::int32_t r) -> const Nested<Gradient>& { return *given_[r]; };
        take_step(step, given, !schedule_.next_update_is_due());
        update_or_defer(step);
      },
      [] {});
}

void Core::check_gradient_count(std::span<const Nested<Gradient>> gradients) const {
  if (static_cast<std::int64_t>(gradients.size()) != replicas_) {
    throw ValueError("apply_gradients: there must be one tree of gradients for each of " +
                     std::to_string(replicas_) + " replicas, got " +
                     std::to_string(gradients.size()));
  }
}

LookupResult Core::look_up(std::span<const Batch> batches, bool training) {
  require_accelerated("look_up");
  require_home("look_up");
  require_sound("look_up");
  const FloatEnvironment ours;
  std::vector<Batch> sized;
  const Feed feed = feed_of_all(with_batch_size(batches, "look_up", sized), training);
  check_batches(feed, "look_up");
  prepare(feed);
  const auto lock = lock_steps("look_up");
  tables();
  Step* step = schedule_.take();
  try {
    read(*step, feed);
    step->training = training;
    flush();
    LookupResult result;
    result.activations = Activations(
        pool_->lend(features_.structure(), replicas_, activation_shapes(*step)), 0, replicas_);
    forward(*step, result.activations.buffer_->values);
    if (training) {
      result.token = LookupToken(this, step);
    } else {
      schedule_.give_back(step);
    }
    return result;
  } catch (...) {
    if (spent_ == step) spent_ = nullptr;
    schedule_.give_back(step);
    throw;
  }
}

void Core::apply_gradients(LookupToken&& token, std::span<const Nested<Gradient>> gradients) {
  if (!token.valid()) throw StateError("apply_gradients: the token is empty, or was used");
  if (token.core_ != this) throw StateError("apply_gradients: the token is of another engine");
  const FloatEnvironment ours;
  const auto lock = lock_steps("apply_gradients");
  tables();
  check_gradient_count(gradients);
  const auto given = [&](std::int32_t r) -> const Nested<Gradient>& { return gradients[r]; };
  take_step(*token.step_, given, false);
  flush();
  try {
    update(*token.step_);
  } catch (...) {
    if (!failed_.empty()) const LookupToken used = std::move(token);
    throw;
  }
  ++taken_;
  const LookupToken used = std::move(token);
}

void Core::drop(Step* step) noexcept { schedule_.give_back(step); }

}  // namespace embertable::engine

namespace embertable {

LookupToken::LookupToken(LookupToken&& other) noexcept
    : core_(std::exchange(other.core_, nullptr)), step_(std::exchange(other.step_, nullptr)) {}

LookupToken& LookupToken::operator=(LookupToken&& other) noexcept {
  LookupToken taken(std::move(other));
  std::swap(core_, taken.core_);
  std::swap(step_, taken.step_);
  return *this;
}

LookupToken::~LookupToken() {
  if (step_) core_->drop(step_);
}

}  // namespace embertable
