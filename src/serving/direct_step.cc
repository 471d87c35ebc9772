// The gradients of lookups, and what they do to the rows.
#include <deque>
#include <exception>
#include <utility>

#include "base/float_environment.h"
#include "embertable/errors.h"
#include "serving/direct.h"

namespace embertable::direct {

using serving::EntrySource;

std::vector<GradientSumsOfTable> Direct::sum_up(Lookups lookups, Upstream upstream) {
  auto sources = collect_sources(lookups, upstream);
  std::deque<GradientSums> sums(sources.size());
  for (std::size_t t = 0; t < sums.size(); ++t)
    updates_.add(stored(t).name, stored(t).shards.front().block(), std::move(sources[t]), sums[t]);
  updates_.prepare();
  updates_.run();
  std::vector<GradientSumsOfTable> all;
  for (std::size_t t = 0; t < sums.size(); ++t)
    all.push_back(serving::in_order(sums[t], stored(t).dim));
  return all;
}

std::map<TablePtr, GradientSumsOfTable> Direct::gradients(Lookups lookups, Upstream upstream) {
  return with_tables("gradients", [&](engine::Tables&) {
    const FloatEnvironment ours;
    std::vector<GradientSumsOfTable> sums = sum_up(lookups, upstream);
    std::map<TablePtr, GradientSumsOfTable> by_table;
    for (std::size_t t = 0; t < sums.size(); ++t)
      by_table[core_.assembly().tables[t].identity] = std::move(sums[t]);
    return by_table;
  });
}

/// What may change rows: whatever it throws, the object is failed.
template <class Change>
void Direct::take_step(Change change) {
  try {
    change();
  } catch (const std::exception& error) {
    core_.fail_in_step(error.what());
    throw;
  } catch (...) {
    core_.fail_in_step("unknown error");
    throw;
  }
  core_.count_step();
}

void Direct::require_optimizers() const {
  for (const engine::ResolvedTable& table : core_.assembly().tables)
    if (!table.optimizer)
      throw StateError("apply_gradients: table '" + table.name() +
                       "' has no optimizer; give it one, or an update of your own");
}

void Direct::plan_step(std::vector<std::vector<EntrySource>> sources, std::span<const float> rates,
                       std::int64_t number) {
  for (std::size_t t = 0; t < sources.size(); ++t) {
    const engine::ResolvedTable& table = core_.assembly().tables[t];
    const RowBlock& rows = stored(t).shards.front().block();
    TableUpdate& update =
        updates_.add(table.name(), rows, std::move(sources[t]), table.steps_every_row());
    update.step = table.begin_step(rates, number);
    update.step.failure = &failure_;
    update.update_rows = table.rule->update_rows(level_, *table.optimizer);
    update.accumulates = table.accumulates();
    if (update.accumulates && !update.plan->wide)
      update.update_groups = table.rule->update_groups(level_, *table.optimizer, rows.dim);
  }
  updates_.prepare();
}

void Direct::apply_gradients(Lookups lookups, Upstream upstream) {
  with_tables("apply_gradients", [&](engine::Tables&) {
    const FloatEnvironment ours;
    require_optimizers();
    auto sources = collect_sources(lookups, upstream);
    std::vector<float> rates;
    const std::int64_t number = core_.step() + 1;
    engine::ask_rates(core_.assembly(), number, rates);
    plan_step(std::move(sources), rates, number);
    take_step([&] {
      failure_.forget();
      updates_.run();
      failure_.rethrow();
    });
  });
}

DirectUpdate Direct::update_of(std::size_t t, const GradientSumsOfTable& sums) const {
  const engine::StoredTable& table = stored(t);
  const RowBlock& rows = table.shards.front().block();
  DirectUpdate update{.table = table.name,
                      .rows = sums.ids,
                      .gradients = sums.sums,
                      .parameters = {rows.row, rows.rows, rows.stride, rows.dim},
                      .slots = {},
                      .step = core_.step() + 1};
  for (std::size_t s = 0; s < table.slots.size(); ++s)
    update.slots[std::string(table.slots[s].name)] = {rows.slot[s], rows.rows, rows.slot_stride[s],
                                                      table.slots[s].row_wise ? 1 : rows.dim};
  return update;
}

void Direct::apply_gradients(Lookups lookups, Upstream upstream,
                             const DirectEmbedding::Update& update) {
  if (!update) throw ValueError("apply_gradients: the update must be a function, got none");
  with_tables("apply_gradients", [&](engine::Tables&) {
    const FloatEnvironment ours;
    const std::vector<GradientSumsOfTable> sums = sum_up(lookups, upstream);
    std::vector<DirectUpdate> updates;
    for (std::size_t t = 0; t < sums.size(); ++t)
      if (!sums[t].ids.empty()) updates.push_back(update_of(t, sums[t]));
    take_step([&] {
      for (const DirectUpdate& table : updates) update(table);
    });
  });
}

}  // namespace embertable::direct
