#include "serving/direct.h"

#include <atomic>
#include <utility>

#include "base/float_environment.h"
#include "base/run_all.h"
#include "embertable/errors.h"
#include "engine/save.h"
#include "serving/lookup.h"
#include "serving/served_table.h"

namespace embertable::direct {
namespace {

StrategyPtr required(StrategyPtr strategy) {
  if (strategy == nullptr)
    throw StateError(
        "DirectEmbedding: needs a strategy, which says how many replicas look up and step, got "
        "none");
  return strategy;
}

std::uint64_t next_id() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

EmbeddingOptions engine_options(DirectOptions options) {
  EmbeddingOptions all;
  all.seed = options.seed;
  all.log = std::move(options.log);
  return all;
}

void check_count(const char* what, std::size_t got, std::int32_t replicas, bool one_is_enough) {
  if (std::cmp_equal(got, replicas) || (one_is_enough && got == 1)) return;
  throw ValueError(std::string("DirectEmbedding: there must be one ") + what + " for each of " +
                   std::to_string(replicas) + " replicas" +
                   (one_is_enough ? ", or one for all" : "") + ", got " + std::to_string(got));
}

void require_optimizers(const engine::Assembly& assembly) {
  for (const engine::ResolvedTable& table : assembly.tables)
    if (!table.optimizer)
      throw StateError("apply_gradients: table '" + table.name() +
                       "' has no optimizer; give it one, or an update of your own");
}

DirectUpdate update_of(const engine::StoredTable& table, const GradientSumsOfTable& sums,
                       std::int64_t step) {
  const RowBlock& rows = table.shards.front().block();
  DirectUpdate update{.table = table.name,
                      .rows = sums.ids,
                      .gradients = sums.sums,
                      .parameters = engine::view_of(rows),
                      .slots = {},
                      .step = step};
  for (std::size_t s = 0; s < table.slots.size(); ++s)
    update.slots[std::string(table.slots[s].name)] = {rows.slot[s], rows.rows, rows.slot_stride[s],
                                                      table.slots[s].row_wise ? 1 : rows.dim};
  return update;
}

}  // namespace

Direct::Direct(Nested<FeatureConfig> features, const std::optional<Optimizer>& optimizer,
               StrategyPtr strategy, DirectOptions options)
    : strategy_(required(std::move(strategy))),
      setup_(std::move(features), optimizer, nullptr, engine_options(std::move(options)),
             strategy_->options().executor),
      store_(setup_),
      id_(next_id()),
      stepping_(*setup_.executor),
      steps_(setup_, id_) {}

void Direct::build() {
  if (!store_.built()) {
    setup_.require_same_process("build");
    store_.build_plain();
  }
  std::call_once(found_, [this] {
    progress_.require_not_failed("build");
    tables_ = &store_.own();
  });
}

std::map<TablePtr, TableView> Direct::table_views() {
  setup_.require_same_process("build");
  store_.build_plain();
  progress_.require_not_failed("embedding_tables");
  return store_.views();
}

std::filesystem::path Direct::save(const engine::Tables& tables, const checkpoint::OpenRun& run,
                                   const CallerState& state,
                                   const std::map<std::string, IdMap>& id_maps) const {
  return engine::save_tables(setup_, tables, progress_.steps().updates(), {run.directory(), &run},
                             state, id_maps);
}

std::string Direct::digest(const engine::Tables& tables) const {
  return engine::digest_of(*setup_.group, tables);
}

RestoreReport Direct::restore(const std::filesystem::path& path, const RestoreOptions& options) {
  setup_.require_same_process("restore");
  const std::lock_guard no_step(stepping_);
  const std::lock_guard no_build(store_.building());
  return store_.restore({checkpoint::local_files(), path}, options, progress_,
                        {.before_rows_change = [](bool) {}, .recovered = [] {}});
}

void Direct::look_up(const Batch& inputs, LookupOutput& output, std::int32_t replica) {
  const std::vector<std::int64_t>& table_of = setup_.assembly.table_of;
  serving::Lookup::run(inputs, setup_.features,
                       [&](std::int64_t feature) {
                         const RowBlock& block =
                             tables_->tables()[table_of[feature]].shards.front().block();
                         return serving::Rows{.base = block.memory(),
                                              .stride = block.stride,
                                              .rows = block.rows,
                                              .dim = block.dim,
                                              .type = block.type};
                       },
                       setup_.level, output, {.prunes = false, .owner = id_, .replica = replica});
}

void Direct::look_up(const Batch& inputs, LookupOutput& output) {
  build();
  progress_.require_not_failed("embedding_lookup");
  look_up(inputs, output, -1);
}

void Direct::look_up(std::span<const Batch> inputs, std::span<LookupOutput> outputs) {
  try {
    check_count("batch", inputs.size(), replicas(), true);
    check_count("output", outputs.size(), replicas(), false);
    build();
    progress_.require_not_failed("embedding_lookup");
    run_all(*setup_.executor, replicas(), [&](const WorkItem& replica) {
      look_up(inputs[inputs.size() == 1 ? 0 : replica.index], outputs[replica.index],
              static_cast<std::int32_t>(replica.index));
    });
  } catch (...) {
    for (LookupOutput& output : outputs) serving::Lookup::forget(output);
    throw;
  }
}

void Direct::check_counts(Parts parts) const {
  if (parts.empty()) throw ValueError("DirectEmbedding: gradients need a lookup, got none");
  for (const LookupGradients& part : parts) {
    check_count("lookup", part.lookups.size(), replicas(), false);
    check_count("tree of gradients", part.upstream.size(), replicas(), false);
  }
}

std::map<TablePtr, GradientSumsOfTable> Direct::gradients(Parts parts) {
  return with_tables("gradients", [&](const engine::Tables& tables) {
    const FloatEnvironment ours;
    check_counts(parts);
    std::vector<GradientSumsOfTable> sums = steps_.sum_up(tables, parts);
    std::map<TablePtr, GradientSumsOfTable> by_table;
    for (std::size_t t = 0; t < sums.size(); ++t)
      by_table[setup_.assembly.tables[t].identity] = std::move(sums[t]);
    return by_table;
  });
}

void Direct::apply_gradients(Parts parts) {
  with_tables("apply_gradients", [&](const engine::Tables& tables) {
    const FloatEnvironment ours;
    require_optimizers(setup_.assembly);
    check_counts(parts);
    steps_.plan(tables, parts, progress_.steps().next());
    progress_.fail_if_thrown([&] { steps_.run(); });
    progress_.steps().count_step();
  });
}

void Direct::apply_gradients(Parts parts, const DirectEmbedding::Update& update) {
  if (!update) throw ValueError("apply_gradients: the update must be a function, got none");
  with_tables("apply_gradients", [&](const engine::Tables& tables) {
    const FloatEnvironment ours;
    check_counts(parts);
    const std::int64_t step = progress_.steps().next();
    const std::vector<GradientSumsOfTable> sums = steps_.sum_up(tables, parts);
    std::vector<DirectUpdate> updates;
    for (std::size_t t = 0; t < sums.size(); ++t)
      if (!sums[t].ids.empty()) updates.push_back(update_of(tables.tables()[t], sums[t], step));
    progress_.fail_if_thrown([&] {
      for (const DirectUpdate& table : updates) update(table);
    });
    progress_.steps().count_step();
  });
}

}  // namespace embertable::direct
