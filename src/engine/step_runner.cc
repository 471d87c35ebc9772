#include "engine/step_runner.h"

#include <fmt/format.h>

#include <string>
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
      steps_(std::make_shared<StepLock>(setup.executor)),
      shares_(setup.hosts * setup.assembly.tables.size()) {
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

/// Returns the floats of one core's activation of a feature.
std::int64_t StepRunner::activation_floats(Step& step, std::int32_t core,
                                           std::int64_t feature) const {
  return step.plan(core, feature).outputs * setup_.table(feature).config.dim;
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
        const std::int64_t floats = activation_floats(step, c, i);
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
  const std::int64_t number = progress_.taken() + schedule_.lacking_gradients() + 1;
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

/// Checks the gradients of a step and the rates of its update, and keeps both in the step.
/// Gradients stay in the caller's memory unless `copy` is set or they are doubles. Changes nothing
/// else.
void StepRunner::accept(Step& step, GradientsOfReplica gradients, bool copy) {
  const std::int64_t number = progress_.next(), features = setup_.features.size();
  const bool check = setup_.options.gradient_policy == GradientPolicy::kError;
  setup_.group->together(Stage{"apply_gradients", number}, [&] {
    step.gradient_memory.reset();
    step.gradient.assign(setup_.cores * features, nullptr);
    gradient_tiles_.clear();
    for (std::int32_t replica = 0; replica < setup_.replicas; ++replica) {
      const Nested<Gradient>& of = gradients(replica);
      for (std::int64_t i = 0; i < features; ++i)
        check_gradient(of[i], step.shape[replica * features + i], setup_.features.path(i), replica);
      for (std::int64_t i = 0; i < features; ++i)
        take_gradient(step, replica, i, of[i], copy, check);
    }
    const auto bad = gradient_tiles_.run(*setup_.executor, setup_.options.tuning.inline_floats,
                                         check, setup_.level);
    if (bad) refuse_gradient(step, number, *bad);
    ask_rates(setup_.assembly, number, step.rates);
  });
}

/// Keeps where the gradient of one feature of one replica will be, and lists what is to be copied
/// or checked.
void StepRunner::take_gradient(Step& step, std::int32_t replica, std::int64_t feature,
                               const Gradient& gradient, bool copy, bool check) {
  const FloatSpan& values = gradient.values;
  if (gradient.is_none()) {
    if (setup_.options.log)
      setup_.warn("feature '" + setup_.features.path(feature) + "': no gradient, zeros are used");
    return;
  }
  const bool copies = copy || values.is_double();
  float* const to = copies ? step.gradient_memory.take<float>(values.size()).data() : nullptr;
  const float* const all = copies ? to : static_cast<const float*>(values.data());
  const std::int32_t begin = replica * setup_.cores_per_replica;
  std::int64_t first = 0;
  for (std::int32_t c = begin; all && c < begin + setup_.cores_per_replica; ++c) {
    const std::int64_t count = activation_floats(step, c, feature);
    step.gradient[c * setup_.features.size() + feature] = all + first;
    if (copies || check)
      gradient_tiles_.add({c, feature, values, first, count, copies ? to + first : nullptr});
    first += count;
  }
}

/// Throws DataError because a number of one core's gradient of update `number` is not finite.
void StepRunner::refuse_gradient(Step& step, std::int64_t number,
                                 const GradientTiles::Place& bad) const {
  const auto core = static_cast<std::int32_t>(bad.core);
  const std::int32_t replica = core / setup_.cores_per_replica;
  std::int64_t before = 0;  // floats of the replica's other cores
  for (std::int32_t c = replica * setup_.cores_per_replica; c < core; ++c)
    before += activation_floats(step, c, bad.feature);
  const ResolvedTable& table = setup_.table(bad.feature);
  const std::int64_t dim = table.config.dim, sample = (before + bad.position) / dim;
  const std::string path = setup_.features.path(bad.feature);
  throw DataError(
      fmt::format("feature '{}', replica {}, sample {}: the gradient must be finite, got {} in "
                  "column {}; in step {} it would reach {} of table '{}'",
                  path, replica, sample,
                  step.gradient[core * setup_.features.size() + bad.feature][bad.position],
                  bad.position % dim, number,
                  reached_row(step, core, bad.feature, bad.position / dim), table.name()),
      {.feature = path, .replica = replica, .sample = sample, .position = before + bad.position});
}

/// Describes where the gradient of one output row of a core goes.
std::string StepRunner::reached_row(Step& step, std::int32_t core, std::int64_t feature,
                                    std::int64_t output) const {
  const LookupPlan& plan = step.plan(core, feature);
  if (plan.is_zeros(output)) return "no row";
  const Host& host = hosts_->host(core / (setup_.cores / setup_.hosts));
  const std::int64_t table = setup_.assembly.table_of[feature];
  return "row " + std::to_string(host.row_of(step, table, plan, plan.first_entry(output)));
}

void StepRunner::apply_queued(Schedule::Awaiting awaiting, GradientsOfReplica gradients) {
  const auto [step, due] = awaiting;
  accept(*step, gradients, !due);
  if (due) update(*step);
  schedule_.gradients_came(due);
  if (!due) pending_ = step;
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

void StepRunner::drop_pending() {
  if (pending_) schedule_.give_back(std::exchange(pending_, nullptr));
}

void StepRunner::update(Step& step) {
  store_.own();
  const std::int64_t number = progress_.updates() + 1;
  summed_step_ = 0;
  // An error of this part has changed no row: the same gradients may be given again.
  step.refused = true;
  hosts_->run([&](Host& host) { host.prepare_update(step, step.rates, number); });
  step.refused = false;
  progress_.fail_if_thrown([&] { hosts_->run([&](Host& host) { host.update(); }); });
  progress_.count_update();
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
  drop_pending();
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
  for (std::int32_t h = 0; h < (placement.replicated() ? 1 : setup_.hosts); ++h) {
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
