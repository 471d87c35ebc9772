#include "serving/direct_steps.h"

#include <string>
#include <utility>

#include "embertable/errors.h"

namespace embertable::direct {

DirectSteps::DirectSteps(const engine::Setup& setup, std::uint64_t owner)
    : setup_(setup), owner_(owner), updates_(*setup.executor, setup.level) {}

const serving::Lookup& DirectSteps::checked(const LookupOutput& output,
                                            std::int32_t replica) const {
  const serving::Lookup* lookup = serving::Lookup::of(output);
  if (lookup != nullptr && lookup->owner() == owner_) return *lookup;
  throw StateError("gradients: the lookup of replica " + std::to_string(replica) +
                   " must be one of this object that succeeded, got " +
                   (lookup == nullptr || lookup->owner() == 0 ? "an output that keeps no entries"
                                                              : "one of another DirectEmbedding"));
}

DirectSteps::Sources DirectSteps::collect_sources(Parts parts) {
  updates_.clear();
  memory_.reset();
  Sources sources(setup_.assembly.tables.size());
  for (std::int32_t replica = 0; std::cmp_less(replica, parts.front().lookups.size()); ++replica) {
    for (const LookupGradients& part : parts) {
      const serving::Lookup& lookup = checked(part.lookups[replica], replica);
      const auto gradients =
          serving::take_gradients(lookup, part.upstream[replica], replica, memory_);
      serving::append_sources(lookup, gradients, replica, setup_.assembly.table_of, sources);
    }
  }
  return sources;
}

std::vector<GradientSumsOfTable> DirectSteps::sum_up(const engine::Tables& tables, Parts parts) {
  const Sources sources = collect_sources(parts);
  for (std::size_t t = 0; t < sources.size(); ++t) {
    const engine::StoredTable& table = tables.tables()[t];
    updates_.add(table.name, table.shards.front().block(), sources[t]);
  }
  updates_.prepare();
  updates_.run();
  std::vector<GradientSumsOfTable> all;
  for (std::size_t t = 0; t < sources.size(); ++t)
    all.push_back(
        serving::in_order(updates_.sums(static_cast<std::int64_t>(t)), tables.tables()[t].dim));
  return all;
}

void DirectSteps::plan(const engine::Tables& tables, Parts parts, std::int64_t step) {
  const Sources sources = collect_sources(parts);
  std::vector<float> rates;
  engine::ask_rates(setup_.assembly, step, rates);
  for (std::size_t t = 0; t < sources.size(); ++t) {
    const engine::StoredTable& stored = tables.tables()[t];
    const engine::ResolvedTable& resolved = setup_.assembly.tables[t];
    TableRun& table = updates_.add(stored.name, stored.shards.front().block(), sources[t]);
    table.step_by(*resolved.optimizer, setup_.level);
    table.step = resolved.begin_step(rates, step);
  }
  updates_.prepare();
}

}  // namespace embertable::direct
