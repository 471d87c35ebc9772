// Takes the gradients of lookups and updates the rows.
#include <exception>
#include <utility>

#include "base/float_environment.h"
#include "embertable/errors.h"
#include "serving/direct.h"

namespace embertable::direct {

using serving::EntrySource;

std::vector<GradientSumsOfTable> Direct::sum_up(Parts parts) {
  const auto sources = collect_sources(parts);
  for (std::size_t t = 0; t < sources.size(); ++t)
    updates_.add(stored(t).name, stored(t).shards.front().block(), sources[t]);
  updates_.prepare();
  updates_.run();
  std::vector<GradientSumsOfTable> all;
  for (std::size_t t = 0; t < sources.size(); ++t)
    all.push_back(serving::in_order(updates_.sums(static_cast<std::int64_t>(t)), stored(t).dim));
  return all;
}

std::map<TablePtr, GradientSumsOfTable> Direct::gradients(Parts parts) {
  return with_tables("gradients", [&](engine::Tables&) {
    const FloatEnvironment ours;
    std::vector<GradientSumsOfTable> sums = sum_up(parts);
    std::map<TablePtr, GradientSumsOfTable> by_table;
    for (std::size_t t = 0; t < sums.size(); ++t)
      by_table[setup_.assembly.tables[t].identity] = std::move(sums[t]);
    return by_table;
  });
}

void Direct::require_optimizers() const {
  for (const engine::ResolvedTable& table : setup_.assembly.tables)
    if (!table.optimizer)
      throw StateError("apply_gradients: table '" + table.name() +
                       "' has no optimizer; give it one, or an update of your own");
}

void Direct::plan_step(std::span<const std::vector<EntrySource>> sources,
                       std::span<const float> rates, std::int64_t number) {
  for (std::size_t t = 0; t < sources.size(); ++t) {
    const engine::ResolvedTable& resolved = setup_.assembly.tables[t];
    TableRun& table = updates_.add(stored(t).name, stored(t).shards.front().block(), sources[t]);
    table.step_by(*resolved.optimizer, setup_.level);
    table.step = resolved.begin_step(rates, number);
  }
  updates_.prepare();
}

void Direct::apply_gradients(Parts parts) {
  with_tables("apply_gradients", [&](engine::Tables&) {
    const FloatEnvironment ours;
    require_optimizers();
    const auto sources = collect_sources(parts);
    std::vector<float> rates;
    const std::int64_t number = progress_.taken() + 1;
    engine::ask_rates(setup_.assembly, number, rates);
    plan_step(sources, rates, number);
    progress_.fail_if_thrown([&] { updates_.run(); });
    progress_.count_step();
  });
}

DirectUpdate Direct::update_of(std::size_t t, const GradientSumsOfTable& sums) const {
  const engine::StoredTable& table = stored(t);
  const RowBlock& rows = table.shards.front().block();
  DirectUpdate update{.table = table.name,
                      .rows = sums.ids,
                      .gradients = sums.sums,
                      .parameters = engine::view_of(rows),
                      .slots = {},
                      .step = progress_.taken() + 1};
  for (std::size_t s = 0; s < table.slots.size(); ++s)
    update.slots[std::string(table.slots[s].name)] = {rows.slot[s], rows.rows, rows.slot_stride[s],
                                                      table.slots[s].row_wise ? 1 : rows.dim};
  return update;
}

void Direct::apply_gradients(Parts parts, const DirectEmbedding::Update& update) {
  if (!update) throw ValueError("apply_gradients: the update must be a function, got none");
  with_tables("apply_gradients", [&](engine::Tables&) {
    const FloatEnvironment ours;
    const std::vector<GradientSumsOfTable> sums = sum_up(parts);
    std::vector<DirectUpdate> updates;
    for (std::size_t t = 0; t < sums.size(); ++t)
      if (!sums[t].ids.empty()) updates.push_back(update_of(t, sums[t]));
    progress_.fail_if_thrown([&] {
      for (const DirectUpdate& table : updates) update(table);
    });
    progress_.count_step();
  });
}

}  // namespace embertable::direct
