#include "engine/step_runner.h"

#include <utility>

#include "embertable/errors.h"
#include "exchange/local_exchange.h"
#include "exchange/threads_exchange.h"

namespace embertable::engine {

StepRunner::StepRunner(const Setup& setup, TableStore& store, Schedule& schedule,
                       Progress& progress)
    : setup_(setup),
      store_(store),
      schedule_(schedule),
      progress_(progress),
      steps_(std::make_shared<StepLock>(setup.executor, progress.shared_steps())),
      shares_(setup.hosts * setup.assembly.tables.size()),
      intake_(setup) {
  statistics_.tables.resize(setup.assembly.tables.size());  // so that adding up cannot fail
}

StepRunner::~StepRunner() {
  // Hosts of one process end together with their exchange.
  if (hosts_ && setup_.group->several()) hosts_->host(0).remote_rows().keep_questions();
}

std::unique_lock<ReentrancyGuard> StepRunner::lock(std::string_view call) {
  store_.require_built(call);
  // A thread of the parent process may have held the lock when it forked.
  setup_.require_same_process(call);
  std::unique_lock lock(stepping());
  progress_.require_not_failed(call);
  return lock;
}

std::vector<std::shared_ptr<Exchange>> StepRunner::make_exchanges() const {
  std::vector<std::shared_ptr<Exchange>> all;
  if (setup_.group->several())
    all.push_back(setup_.strategy->options().exchange);
  else if (setup_.hosts == 1)
    all.push_back(make_local_exchange());
  else
    for (std::unique_ptr<Exchange>& one : make_threads_exchange(setup_.hosts))
      all.push_back(std::move(one));
  return all;
}

std::unique_ptr<HostTeam> StepRunner::make_hosts(const Tables& tables) {
  std::vector<std::unique_ptr<Host>> hosts;
  for (std::shared_ptr<Exchange>& exchange : make_exchanges()) {
    const std::span<NamedShares> shares = std::span(shares_).subspan(
        hosts.size() * setup_.assembly.tables.size(), setup_.assembly.tables.size());
    hosts.push_back(std::make_unique<Host>(std::move(exchange), setup_.first_host, setup_.executor,
                                           setup_.assembly, tables, shares,
                                           setup_.cores / setup_.hosts, setup_.options.tuning));
  }
  return std::make_unique<HostTeam>(std::move(hosts));
}

/// Cuts each replica's activations into those of its cores.
std::span<const std::span<float>> StepRunner::values_by_core(
    Step& step, std::span<const std::span<float>> out) {
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
  forward(step, out, setup_.all_hosts > 1 ? schedule_.following() : nullptr);
}

void StepRunner::look_up(Step& step, std::span<const std::span<float>> out) {
  flush();
  forward(step, out, nullptr);
}

/// Looks up, then runs the pending update, if there still is one. `next`: the step that is looked
/// up next, if it is known.
void StepRunner::forward(Step& step, std::span<const std::span<float>> out, Step* next) {
  setup_.group->meet();
  store_.own();
  const auto values = setup_.cores_per_replica > 1 ? values_by_core(step, out) : out;
  const std::int64_t number = progress_.steps().taken() + schedule_.lacking_gradients() + 1;
  try {
    hosts_->run([&](Host& host) { host.forward(step, values, next, number); });
    if (setup_.options.count_unique_ids)
      hosts_->run([&](Host& host) { host.count_named_rows(step); });
    count_lookups(step);
    flush();
  } catch (...) {
    undo_forward(step);
    throw;
  }
}

/// Makes the step ready for another forward. With one host the step's cursors are reset; with
/// several, which need none, its plans name rows of the whole table again.
void StepRunner::undo_forward(Step& step) noexcept {
  if (setup_.all_hosts > 1) {
    for (std::int32_t h = 0; h < setup_.hosts; ++h) hosts_->host(h).undo_forward(step);
    return;
  }
  for (std::int32_t c = 0; c < setup_.cores; ++c)
    for (std::int64_t i = 0; i < setup_.features.size(); ++i)
      step.reader(c, i).recount(setup_.level);
}

void StepRunner::apply_queued(Schedule::Awaiting awaiting, GradientsOfReplica gradients) {
  const auto [step, due] = awaiting;
  intake_.accept(*step, progress_.steps().next(), gradients, !due, *hosts_);
  if (due) update(*step);
  schedule_.gradients_came(due);
  if (!due) pending_ = step;
  progress_.steps().count_taken();
}

void StepRunner::apply(Step& step, GradientsOfReplica gradients) {
  intake_.accept(step, progress_.steps().next(), gradients, false, *hosts_);
  flush();
  update(step);
  progress_.steps().count_taken();
}

void StepRunner::flush() {
  if (!pending_) return;
  update(*pending_);
  schedule_.give_back(std::exchange(pending_, nullptr));
}

void StepRunner::forget_last_step() {
  summed_step_ = 0;
  if (pending_) schedule_.give_back(std::exchange(pending_, nullptr));
}

void StepRunner::update(Step& step) {
  store_.own();
  const std::int64_t number = progress_.steps().updates() + 1;
  summed_step_ = 0;
  // An error of this part has changed no row: the same gradients may be given again.
  step.refused = true;
  hosts_->run([&](Host& host) { host.prepare_update(step, step.rates, number); });
  step.refused = false;
  progress_.fail_if_thrown([&] { hosts_->run([&](Host& host) { host.update(step); }); });
  progress_.steps().count_update();
  summed_step_ = number;
  count_update(step);
}

std::int64_t StepRunner::drop_queued(std::optional<std::int64_t> steps) {
  return schedule_.drop_queued(steps, [&] {  // only of the oldest may hosts have asked each other
    for (std::int32_t h = 0; hosts_ && h < hosts_->size(); ++h)
      hosts_->host(h).remote_rows().leave_questions();
  });
}

void StepRunner::recover(std::unique_ptr<HostTeam> hosts) {
  schedule_.drop_dequeued();
  forget_last_step();
  // Other hosts look up the batches that are queued. No other process reads the questions any more:
  // its failure has ended the round. A plain engine, and one that is not built, have no hosts.
  for (std::int32_t h = 0; hosts_ && h < hosts_->size(); ++h)
    hosts_->host(h).remote_rows().drop_questions();
  hosts_ = std::move(hosts);
  looked_up_ = nullptr;
  statistics_.update_workers = 0;
  statistics_.update_seconds = 0;
}

/// Counts a step that every host has looked up. Times are those of host 0.
void StepRunner::count_lookups(Step& step) noexcept {
  looked_up_ = &step;
  statistics_.forward_workers = hosts_->host(0).last_forward().workers;
  statistics_.forward_seconds = hosts_->host(0).last_forward().seconds;
  for (std::int64_t t = 0; t < std::ssize(statistics_.tables); ++t) {
    StepStatistics::Table& counts = statistics_.tables[t] = {};
    for (std::int32_t h = 0; setup_.options.count_unique_ids && h < hosts_->size(); ++h)
      counts.unique_rows += hosts_->host(h).named_rows(t);
  }
  for (std::int32_t c = 0; c < setup_.cores; ++c) {
    for (std::int64_t i = 0; i < setup_.features.size(); ++i) {
      const FeatureReader& reader = step.reader(c, i);
      StepStatistics::Table& counts = statistics_.tables[setup_.assembly.table_of[i]];
      counts.entries += step.plan(c, i).row.size;
      counts.dropped_ids += reader.dropped_ids();
      counts.truncated_entries += reader.truncated_entries();
      counts.empty_rows += reader.empty_rows();
    }
  }
  for (std::int64_t t = 0; step.training && t < std::ssize(statistics_.tables); ++t)
    shares_[t].entries.store(
        statistics_.tables[t].entries * setup_.strategy->cores() / setup_.cores,
        std::memory_order_relaxed);
}

/// Counts an update. The statistics may be those of a later lookup, which has its own ids.
void StepRunner::count_update(const Step& step) noexcept {
  statistics_.update_workers = hosts_->host(0).last_update().workers;
  statistics_.update_seconds = hosts_->host(0).last_update().seconds;
  for (std::int64_t t = 0; t < std::ssize(statistics_.tables); ++t) {
    StepStatistics::Table& counts = statistics_.tables[t];
    std::int64_t unique = 0;
    counts.rows_touched = counts.buckets = 0;
    for (std::int32_t h = 0; h < hosts_->size(); ++h) {
      const TableRun& table = step.host[h].tables[t];
      const std::int64_t updated = hosts_->host(h).updated().unique_rows(t);
      counts.buckets += table.plan.buckets();
      if (h > 0 && table.is_replicated()) continue;  // each copy made the same steps
      unique += updated;
      if (!table.gives_sums)
        counts.rows_touched += table.steps_every_row ? table.rows.rows : updated;
    }
    if (looked_up_ == &step) counts.unique_rows = unique;
  }
}

std::int64_t StepRunner::entries_set_apart(std::int64_t table) const {
  std::int64_t entries = 0;
  for (std::int32_t h = 0; h < hosts_->size(); ++h)
    entries += hosts_->host(h).updated().set_apart(table);
  return entries;
}

GradientSumsOfTable StepRunner::gradient_sums(const Tables& tables, std::string_view table) const {
  const std::int64_t index = tables.find(table).table - tables.tables().data();
  const ResolvedTable& resolved = setup_.assembly.tables[index];
  if (table != resolved.name() || !resolved.rule->gives_sums()) {
    throw ValueError("gradient_sums: '" + std::string(table) +
                     "' must be a table whose rule is none, its rule is " +
                     resolved.optimizer->rule());
  }
  const Placement& placement = tables.tables()[index].placement;
  std::vector<std::pair<std::int64_t, const float*>> sums;
  for (std::int32_t h = 0; summed_step_ > 0 && h < (placement.replicated() ? 1 : setup_.hosts);
       ++h) {
    const GradientSums& part = hosts_->host(h).updated().sums(index);
    for (std::int64_t i = 0; i < part.size(); ++i)
      sums.emplace_back(placement.global_row(setup_.first_host + h, part.row(i)), part.sum(i));
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
