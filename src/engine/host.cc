#include "engine/host.h"

#include <chrono>

#include "step/fetch_remote_rows.h"
#include "step/quantization.h"

namespace embertable::engine {
namespace {

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

Host::Host(std::unique_ptr<Exchange> exchange, std::shared_ptr<Executor> executor,
           const Assembly& assembly, std::int32_t replicas_per_host,
           EmbeddingOptions::Tuning tuning, bool count_unique_ids)
    : exchange_(std::move(exchange)),
      executor_(std::move(executor)),
      assembly_(assembly),
      replicas_per_host_(replicas_per_host),
      count_unique_ids_(count_unique_ids),
      workers_(*executor_, tuning.inline_floats),
      messages_(*exchange_),
      gradient_exchange_(level_),
      backward_(level_, std::ssize(assembly.tables)) {
  statistics_.tables.resize(assembly.tables.size());
}

void Host::forward(const Tables& tables, Step& step, std::span<const std::span<float>> values) {
  const auto begin = std::chrono::steady_clock::now();
  HostStep& mine = of(step);
  mine.memory.reset();
  point_at_tables(tables, mine);
  list_features(step, values);
  if (!messages_.alone())
    fetch_remote_rows(mine, messages_);
  else if (step.training)
    plan_updates(mine);
  forward_.list(mine, workers_.count());
  statistics_.forward_workers = forward_.run(workers_, level_);
  statistics_.forward_seconds = seconds_since(begin);
  count_lookups(step);
}

void Host::backward(const Tables& tables, Step& step, std::span<const float> rates,
                    std::int64_t number) {
  const auto begin = std::chrono::steady_clock::now();
  HostStep& mine = of(step);
  point_at_tables(tables, mine);
  for (std::size_t t = 0; t < mine.tables.size(); ++t) {
    mine.tables[t].scalars = assembly_.tables[t].begin_step(rates, number);
    for (FeatureRun& feature : mine.tables[t].features)
      feature.gradient = step.gradient[feature.index];
  }
  if (messages_.alone())
    point_at_gradients(mine);
  else
    gradient_exchange_.run(mine, messages_);
  backward_.prepare(mine, workers_);
  backward_.run(workers_);
  count_updates(step);
  statistics_.update_seconds = seconds_since(begin);
}

/// Sets what a step needs to know of the tables as they are now.
void Host::point_at_tables(const Tables& tables, HostStep& step) const {
  step.replicas_per_host = replicas_per_host_;
  step.tables.resize(assembly_.tables.size());
  for (std::size_t t = 0; t < step.tables.size(); ++t) {
    const StoredTable& stored = tables.tables()[t];
    const ResolvedTable& resolved = assembly_.tables[t];
    TableRun& table = step.tables[t];
    table.name = stored.name;
    table.rows = stored.shards[exchange_->host()].block();
    table.placement = &stored.placement;
    table.wide = stored.wide();
    table.grid = grid_of(resolved.config.quantization_config);
    table.rule = resolved.rule;
    table.optimizer = &*resolved.optimizer;
    table.accumulates = resolved.accumulates();
    table.steps_every_row = resolved.steps_every_row();
  }
}

/// Lists what the replicas of this host look up, table by table.
void Host::list_features(Step& step, std::span<const std::span<float>> values) const {
  const std::int64_t features = std::ssize(assembly_.table_of);
  const std::int32_t first = exchange_->host() * replicas_per_host_;
  for (std::size_t t = 0; t < assembly_.tables.size(); ++t) {
    TableRun& table = of(step).tables[t];
    table.buckets = step.buckets.empty() ? 1 : step.buckets[t];
    table.plan = {};
    table.features.clear();
    for (std::int32_t r = first; r < first + replicas_per_host_; ++r)
      for (const std::int64_t feature : assembly_.tables[t].features)
        table.features.push_back({.plan = &step.plan(r, feature),
                                  .replica = r,
                                  .index = r * features + feature,
                                  .out = values[r * features + feature].data()});
  }
}

void Host::count_lookups(Step& step) {
  looked_up_ = &step;
  for (std::size_t t = 0; t < statistics_.tables.size(); ++t) {
    StepStatistics::Table& counts = statistics_.tables[t];
    counts = {};
    for (const FeatureRun& run : of(step).tables[t].features) {
      const FeatureReader& reader =
          step.reader(run.replica, run.index % std::ssize(assembly_.table_of));
      counts.dropped_ids += reader.dropped_ids();
      counts.truncated_entries += reader.truncated_entries();
      counts.empty_rows += reader.empty_rows();
      counts.entries += run.plan->row.size;
    }
  }
  if (count_unique_ids_)
    unique_rows_.count(of(step), workers_, [&](std::int64_t table, std::int64_t rows) {
      statistics_.tables[table].unique_rows = rows;
    });
}

void Host::count_updates(const Step& step) {
  statistics_.update_workers = backward_.workers();
  for (std::size_t t = 0; t < statistics_.tables.size(); ++t) {
    const TableRun& table = step.host[exchange_->host()].tables[t];
    const std::int64_t unique = backward_.unique_rows(static_cast<std::int64_t>(t));
    StepStatistics::Table& counts = statistics_.tables[t];
    if (looked_up_ == &step) counts.unique_rows = unique;
    counts.buckets = table.plan.buckets();
    if (table.steps_every_row)
      counts.rows_touched = table.rows.rows;
    else
      counts.rows_touched = table.rule->gives_sums() ? 0 : unique;
  }
}

std::int64_t Host::row_of(const Tables& tables, const Step& step, std::size_t table,
                          const LookupPlan& plan, std::int64_t entry) const {
  const std::int32_t host = exchange_->host();
  return global_row(tables.tables()[table].placement, step.host[host].tables[table].route, host,
                    plan, entry);
}

std::int64_t Host::scratch_bytes() const noexcept {
  return messages_.bytes() + gradient_exchange_.scratch_bytes() + backward_.scratch_bytes();
}

}  // namespace embertable::engine
