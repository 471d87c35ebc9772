#include "engine/step_runner.h"

#include <string>
#include <utility>

#include "embertable/errors.h"
#include "engine/output_shapes.h"
#include "exchange/local_exchange.h"
#include "exchange/threads_exchange.h"

namespace embertable::engine {

StepRunner::StepRunner(const Setup& setup, TableStore& store, Schedule& schedule,
                       Progress& progress)
    : setup_(setup),
      store_(store),
      schedule_(schedule),
      progress_(progress),
      unique_share_(setup.assembly.tables.size()) {
  for (std::atomic<double>& share : unique_share_) share = 1;
}

std::unique_lock<ReentrancyGuard> StepRunner::lock(std::string_view call) {
  store_.require_built(call);
  // A thread of the parent process may have held the lock when it forked.
  setup_.require_same_process(call);
  std::unique_lock lock(stepping_);
  progress_.require_not_failed(call);
  return lock;
}

std::unique_ptr<HostTeam> StepRunner::make_hosts() const {
  std::vector<std::unique_ptr<Exchange>> exchanges;
  if (setup_.hosts > 1) {
    exchanges = make_threads_exchange(setup_.hosts, setup_.timeout());
  } else {
    exchanges.push_back(make_local_exchange());
  }
  std::vector<std::unique_ptr<Host>> hosts;
  for (std::unique_ptr<Exchange>& exchange : exchanges) {
    hosts.push_back(std::make_unique<Host>(std::move(exchange), setup_.executor, setup_.assembly,
                                           setup_.cores / setup_.hosts, setup_.options.tuning,
                                           setup_.options.count_unique_ids));
  }
  return std::make_unique<HostTeam>(std::move(hosts));
}

std::span<const Shape> StepRunner::activation_shapes(Step& step) {
  activation_shapes_.clear();
  for (std::int32_t r = 0; r < setup_.replicas; ++r)
    for (std::int64_t i = 0; i < setup_.features.size(); ++i)
      activation_shapes_.push_back(activation_shape(setup_, step, r, i));
  return activation_shapes_;
}

/// Cuts each replica's activations into those of its cores.
std::span<const std::span<float>> StepRunner::values_by_core(
    Step& step, std::span<const std::span<float>> out) {
  if (setup_.cores_per_replica == 1) return out;
  const std::int64_t features = setup_.features.size();
  core_values_.resize(setup_.cores * features);
  for (std::int32_t r = 0; r < setup_.replicas; ++r) {
    const std::int32_t first = r * setup_.cores_per_replica;
    for (std::int64_t i = 0; i < features; ++i) {
      std::span<float> rest = out[r * features + i];
      for (std::int32_t c = first; c < first + setup_.cores_per_replica; ++c) {
        const std::int64_t floats = activation_floats(setup_, step, c, i);
        core_values_[c * features + i] = rest.first(floats);
        rest = rest.subspan(floats);
      }
    }
  }
  return core_values_;
}

void StepRunner::look_up_queued(Step& step, std::span<const std::span<float>> out) {
  if (!step.training || step.sequential) flush();
  forward(step, out);
  try {
    flush();
  } catch (...) {
    undo_forward(step);
    throw;
  }
}

void StepRunner::look_up(Step& step, std::span<const std::span<float>> out) {
  flush();
  forward(step, out);
}

/// Looks up without changing a row. If one of several hosts fails, it leaves the others in the
/// middle of their exchanges: then the engine has failed.
void StepRunner::forward(Step& step, std::span<const std::span<float>> out) {
  Tables& rows = store_.own();
  const std::span<const std::span<float>> values = values_by_core(step, out);
  const auto run = [&] { hosts_->run([&](Host& host) { host.forward(rows, step, values); }); };
  try {
    if (setup_.hosts == 1)
      run();
    else
      progress_.fail_if_thrown(run);
  } catch (...) {
    undo_forward(step);
    throw;
  }
  add_up_statistics();
}

/// Makes the step ready for another forward. With one host only the step's cursors need to be
/// reset; with several the plans name rows of messages, so the step cannot be looked up again.
void StepRunner::undo_forward(Step& step) {
  if (setup_.hosts > 1) {
    unrepeatable_step_ = &step;
    return;
  }
  for (std::int32_t c = 0; c < setup_.cores; ++c)
    for (std::int64_t i = 0; i < setup_.features.size(); ++i)
      step.reader(c, i).recount(setup_.level);
}

void StepRunner::accept(Step& step, GradientsOfReplica gradients, bool copy) {
  const auto reached_row = [&](std::int32_t core, std::int64_t feature, std::int64_t output) {
    const LookupPlan& plan = step.plan(core, feature);
    const std::int64_t entry = plan.first_entry(output);
    if (entry == plan.first_entry(output + 1)) return std::string("no row");
    const Host& host = hosts_->host(core / (setup_.cores / setup_.hosts));
    const std::int64_t table = setup_.assembly.table_of[feature];
    return "row " + std::to_string(host.row_of(store_.own(), step, table, plan, entry));
  };
  accept_gradients(setup_, step, progress_.taken() + 1, gradients, copy, reached_row);
}

void StepRunner::apply_queued(GradientsOfReplica gradients) {
  const auto [step, due] = schedule_.awaiting_gradients();
  accept(*step, gradients, !due);
  if (due) update(*step);
  schedule_.gradients_came();
  if (due)
    schedule_.give_back(step);
  else
    pending_ = step;
  progress_.count_taken();
}

void StepRunner::apply(Step& step, GradientsOfReplica gradients) {
  accept(step, gradients, false);
  flush();
  update(step);
  progress_.count_taken();
}

void StepRunner::flush() {
  if (!pending_) return;
  update(*pending_);
  schedule_.give_back(std::exchange(pending_, nullptr));
}

void StepRunner::update(Step& step) {
  Tables& rows = store_.own();
  const std::int64_t number = progress_.updates() + 1;
  progress_.fail_if_thrown(
      [&] { hosts_->run([&](Host& host) { host.backward(rows, step, step.rates, number); }); });
  progress_.count_update();
  summed_step_ = number;
  for (std::int64_t t = 0; t < std::ssize(unique_share_); ++t)
    unique_share_[t].store(hosts_->host(0).unique_share(t), std::memory_order_relaxed);
  add_up_statistics();
}

void StepRunner::forget(Step* step) {
  if (unrepeatable_step_ == step) unrepeatable_step_ = nullptr;
  schedule_.give_back(step);
}

void StepRunner::recover(std::unique_ptr<HostTeam> hosts) {
  schedule_.drop_dequeued();
  if (pending_) schedule_.give_back(std::exchange(pending_, nullptr));
  schedule_.drop_if_next(std::exchange(unrepeatable_step_, nullptr));
  hosts_ = std::move(hosts);
}

/// Adds up statistics: times of host 0, counts of all hosts.
void StepRunner::add_up_statistics() {
  statistics_ = hosts_->host(0).statistics();
  for (std::int32_t h = 1; h < hosts_->size(); ++h) {
    for (std::int64_t t = 0; t < std::ssize(statistics_.tables); ++t) {
      const StepStatistics::Table& part = hosts_->host(h).statistics().tables[t];
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

GradientSumsOfTable StepRunner::gradient_sums(const Tables& tables, std::string_view table) const {
  const std::int64_t index = tables.find(table).table - tables.tables().data();
  const ResolvedTable& resolved = setup_.assembly.tables[index];
  if (table != resolved.name() || !resolved.rule->gives_sums()) {
    throw ValueError("gradient_sums: '" + std::string(table) +
                     "' must be a table whose rule is none, its rule is " +
                     resolved.optimizer->rule());
  }
  std::vector<std::pair<std::int64_t, const float*>> sums;
  for (std::int32_t h = 0; h < setup_.hosts; ++h) {
    const GradientSums& part = hosts_->host(h).gradient_sums(index);
    for (std::int64_t i = 0; i < part.size(); ++i)
      sums.emplace_back(tables.tables()[index].placement.global_row(h, part.row(i)), part.sum(i));
  }
  return in_order(std::move(sums), resolved.config.dim, summed_step_);
}

std::int64_t StepRunner::scratch_bytes() const {
  std::int64_t bytes = 0;
  for (std::int32_t host = 0; hosts_ && host < hosts_->size(); ++host)
    bytes += hosts_->host(host).scratch_bytes();
  return bytes;
}

}  // namespace embertable::engine
