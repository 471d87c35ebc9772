#include "engine/host.h"

#include <chrono>
#include <utility>

#include "engine/schedule/reentrancy_guard.h"
#include "step/bucket_policy.h"
#include "step/quantization.h"

namespace embertable::engine {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

double seconds_since(Clock::time_point begin) { return seconds_between(begin, Clock::now()); }

}  // namespace

Host::Host(std::shared_ptr<Exchange> exchange, std::int32_t first_host,
           std::shared_ptr<Executor> executor, const Assembly& assembly, const Tables& tables,
           std::span<NamedShares> shares, std::int32_t cores_per_host,
           EmbeddingOptions::Tuning tuning)
    : exchange_(std::move(exchange)),
      first_host_(first_host),
      executor_(std::move(executor)),
      assembly_(assembly),
      cores_per_host_(cores_per_host),
      shares_(shares),
      workers_(*executor_, tuning.inline_floats),
      messages_(*exchange_),
      remote_rows_(*exchange_, messages_, workers_, level_),
      once_rows_(level_),
      gradient_exchange_(level_),
      backward_(level_, std::ssize(assembly.tables), shares),
      named_rows_(assembly.tables.size()) {
  for (std::int64_t t = 0; t < std::ssize(assembly.tables); ++t) {
    const StoredTable& stored = tables.tables()[t];
    StepTable& table = tables_.emplace_back();
    table.name = stored.name;
    table.rows = stored.shard(exchange_->host()).block();
    table.placement = &stored.placement;
    table.wide = needs_wide_numbers(stored.vocabulary_size);
    table.grid = grid_of(assembly.tables[t].config.quantization_config);
    table.step_by(*assembly.tables[t].optimizer, level_);
  }
}

void Host::forward(Step& step, std::span<const std::span<float>> values, Step* next,
                   std::int64_t number) {
  const AtWork here(*executor_);
  const auto begin = Clock::now();
  messages_.set_step(step.training ? number : -1);
  HostStep& mine = of(step);
  if (!remote_rows_.asked_for(mine)) make_ready(step);
  for (TableRun& table : mine.tables)
    for (FeatureRun& feature : table.features) feature.out = values[feature.index].data();
  if (is_alone()) {
    if (step.training) {
      once_rows_.run(mine, workers_);
      plan_updates(mine);
    }
  } else if (remote_rows_.fetch(mine, step.training, next != nullptr)) {
    make_ready(*next);
    remote_rows_.ask_ahead(of(*next), next->training ? number + (step.training ? 1 : 0) : -1);
  }
  const auto ready = Clock::now();
  const std::int32_t workers = forward_.run(mine, workers_, level_);
  const auto end = Clock::now();
  mine.lookup_seconds = seconds_between(ready, end);
  last_forward_ = {workers, seconds_between(begin, end)};
}

/// Makes a step ready for its forward.
void Host::make_ready(Step& step) const {
  HostStep& mine = of(step);
  mine.memory.reset();
  if (mine.tables.empty()) list_features(step);
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    TableRun& table = mine.tables[t];
    static_cast<StepTable&>(table) = tables_[t];
    table.buckets = step.cuts[t].buckets;
    table.once_ranges =
        step.training ? RowRanges::of_rows(table.rows.rows, step.cuts[t].once_ranges) : RowRanges();
    table.reads_to_level2 = reads_through_level2(shares_[t].unique.load(std::memory_order_relaxed));
  }
  if (workers_.count() == 1) return;
  divide_among_tables(mine);
  mine.keeps_tables = affinity_.keeps_tables();
}

/// Lists what the cores of this host look up, table by table. It is the same each time that the
/// step's memory is used.
void Host::list_features(Step& step) const {
  HostStep& mine = of(step);
  const std::int64_t features = std::ssize(assembly_.table_of);
  const std::int32_t first = local() * cores_per_host_;
  const std::int32_t cores_before = first_host_ * cores_per_host_;  // in other processes
  mine.cores_per_host = cores_per_host_;
  std::vector<TableRun> tables(tables_.size());
  for (std::size_t t = 0; t < tables.size(); ++t)
    for (std::int32_t core = first; core < first + cores_per_host_; ++core)
      for (const std::int64_t feature : assembly_.tables[t].features)
        tables[t].features.push_back({.plan = &step.plan(core, feature),
                                      .core = cores_before + core,
                                      .index = core * features + feature});
  mine.tables = std::move(tables);
}

void Host::count_named_rows(const Step& step) {
  unique_rows_.count(step.host, local(), workers_,
                     [&](std::int64_t table, std::int64_t rows) { named_rows_[table] = rows; });
}

void Host::prepare_update(Step& step, std::span<const float> rates, std::int64_t number) {
  const AtWork here(*executor_);
  const auto begin = Clock::now();
  HostStep& mine = of(step);
  for (std::size_t t = 0; t < mine.tables.size(); ++t) {
    mine.tables[t].step = assembly_.tables[t].begin_step(rates, number);
    for (FeatureRun& feature : mine.tables[t].features)
      feature.gradient = step.gradient[feature.index];
  }
  select_zeros(mine, workers_);
  messages_.set_step(number);
  if (messages_.alone())
    point_at_gradients(mine);
  else
    gradient_exchange_.run(mine, messages_, workers_);
  backward_.prepare(mine, workers_);
  last_update_ = {0, seconds_since(begin)};
}

void Host::update(Step& step) {
  const AtWork here(*executor_);
  const auto begin = Clock::now();
  const std::int32_t workers = backward_.run(workers_);
  const double seconds = seconds_since(begin);
  const HostStep& mine = of(step);
  affinity_.took(mine.keeps_tables, mine.floats, mine.lookup_seconds + seconds);
  last_update_ = {workers, last_update_.seconds + seconds};
}

std::int64_t Host::row_of(const Step& step, std::size_t table, const LookupPlan& plan,
                          std::int64_t entry) const {
  const std::int32_t host = exchange_->host();
  return global_row(*tables_[table].placement, step.host[local()].tables[table].route, host, plan,
                    entry);
}

std::int64_t Host::scratch_bytes() const noexcept {
  return messages_.bytes() + remote_rows_.scratch_bytes() + gradient_exchange_.scratch_bytes() +
         backward_.scratch_bytes() + unique_rows_.bytes();
}

}  // namespace embertable::engine
