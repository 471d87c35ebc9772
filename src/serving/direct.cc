#include "serving/direct.h"

#include <atomic>
#include <utility>

#include "base/float_environment.h"
#include "embertable/errors.h"
#include "engine/save.h"
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

}  // namespace

Direct::Direct(Nested<FeatureConfig> features, const std::optional<Optimizer>& optimizer,
               StrategyPtr strategy, DirectOptions options)
    : strategy_(required(std::move(strategy))),
      setup_(std::move(features), optimizer, nullptr, engine_options(std::move(options)),
             strategy_->options().executor),
      store_(setup_),
      id_(next_id()),
      stepping_(*setup_.executor),
      updates_(*setup_.executor, level_) {}

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
  return store_.views();
}

std::filesystem::path Direct::save(const engine::Tables& tables, const checkpoint::OpenRun& run,
                                   const CallerState& state,
                                   const std::map<std::string, IdMap>& id_maps) const {
  return engine::save_tables(setup_, tables, progress_.updates(), {run.directory(), &run}, state,
                             id_maps);
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

const engine::StoredTable& Direct::stored(std::int64_t table) const {
  return tables_->tables()[table];
}

void Direct::look_up(const Batch& inputs, LookupOutput& output, std::int32_t replica) {
  const std::vector<std::int64_t>& table_of = setup_.assembly.table_of;
  serving::Lookup::run(inputs, setup_.features,
                       [&](std::int64_t feature) {
                         const RowBlock& block = stored(table_of[feature]).shards.front().block();
                         return serving::Rows{.base = block.memory(),
                                              .stride = block.stride,
                                              .rows = block.rows,
                                              .dim = block.dim,
                                              .type = block.type};
                       },
                       level_, output, {.prunes = false, .owner = id_, .replica = replica});
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
    serving::run_all(*setup_.executor, replicas(), [&](std::int64_t replica) {
      look_up(inputs[inputs.size() == 1 ? 0 : replica], outputs[replica],
              static_cast<std::int32_t>(replica));
    });
  } catch (...) {
    for (LookupOutput& output : outputs) serving::Lookup::forget(output);
    throw;
  }
}

void Direct::check_counts(const LookupGradients& part) const {
  check_count("lookup", part.lookups.size(), replicas(), false);
  check_count("tree of gradients", part.upstream.size(), replicas(), false);
}

const serving::Lookup& Direct::checked(const LookupOutput& output, std::int32_t replica) const {
  const serving::Lookup* lookup = serving::Lookup::of(output);
  if (lookup != nullptr && lookup->owner() == id_) return *lookup;
  throw StateError("gradients: the lookup of replica " + std::to_string(replica) +
                   " must be one of this object that succeeded, got " +
                   (lookup == nullptr || lookup->owner() == 0 ? "an output that keeps no entries"
                                                              : "one of another DirectEmbedding"));
}

std::vector<std::vector<serving::EntrySource>> Direct::collect_sources(Parts parts) {
  if (parts.empty()) throw ValueError("DirectEmbedding: gradients need a lookup, got none");
  for (const LookupGradients& part : parts) check_counts(part);
  updates_.clear();
  memory_.reset();
  std::vector<std::vector<serving::EntrySource>> sources(setup_.assembly.tables.size());
  for (std::int32_t replica = 0; replica < replicas(); ++replica) {
    for (const LookupGradients& part : parts) {
      const serving::Lookup& lookup = checked(part.lookups[replica], replica);
      const auto gradients =
          serving::take_gradients(lookup, part.upstream[replica], replica, memory_);
      serving::append_sources(lookup, gradients, replica, setup_.assembly.table_of, sources);
    }
  }
  return sources;
}

}  // namespace embertable::direct
