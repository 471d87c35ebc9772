#include <algorithm>

#include "embertable/errors.h"
#include "embertable/variables/sharded_variable.h"
#include "engine/core.h"
#include "engine/output_shapes.h"
#include "exchange/local_exchange.h"
#include "exchange/threads_exchange.h"

namespace embertable::engine {
namespace {

constexpr std::int32_t kMostQueued = 64;

/// What a table must have in common with another for the other's values to be its own.
std::string outline(const std::string& name, std::int64_t rows, std::int32_t dim,
                    const std::vector<RuleSlot>& slots) {
  std::string text =
      "'" + name + "' of " + std::to_string(rows) + " rows of " + std::to_string(dim) + " floats";
  for (const RuleSlot& slot : slots) {
    text += (slot.row_wise ? ", row-wise slot '" : ", slot '") + std::string(slot.name) + "'";
  }
  return text;
}

EmbeddingOptions checked(EmbeddingOptions options) {
  if (options.queue_capacity < 1 || options.queue_capacity > kMostQueued) {
    throw ValueError("embedding options: queue_capacity must be 1.." + std::to_string(kMostQueued) +
                     ", got " + std::to_string(options.queue_capacity));
  }
  return options;
}

std::vector<FeatureSpec> make_specs(const Nested<FeatureConfig>& features, const Assembly& assembly,
                                    const EmbeddingOptions& options) {
  std::vector<FeatureSpec> specs;
  for (std::int64_t i = 0; i < features.size(); ++i) {
    const FeatureConfig& feature = features[i];
    const TableConfig& table = assembly.tables[assembly.table_of[i]].config;
    FeatureSpec spec;
    spec.path = features.path(i);
    spec.vocabulary_size = table.vocabulary_size;
    spec.combiner = table.combiner;
    spec.max_sequence_length = feature.max_sequence_length;
    spec.shape_is_configured = feature.output_shape.has_rank();
    spec.drop_out_of_range = options.out_of_range == OutOfRange::kDrop;
    spec.variable_batch = options.variable_batch;
    spec.wide = table.vocabulary_size >= (std::int64_t{1} << 31);
    specs.push_back(std::move(spec));
  }
  return specs;
}

std::vector<std::unique_ptr<Exchange>> make_exchanges(std::int32_t hosts,
                                                      std::chrono::milliseconds timeout) {
  if (hosts > 1) return make_threads_exchange(hosts, timeout);
  std::vector<std::unique_ptr<Exchange>> alone;
  alone.push_back(make_local_exchange());
  return alone;
}

std::chrono::milliseconds timeout_of(const StrategyPtr& strategy) {
  return strategy ? strategy->options().timeout : std::chrono::milliseconds(1);
}

std::int32_t default_threads() {
  return std::clamp<std::int32_t>(static_cast<std::int32_t>(std::thread::hardware_concurrency()), 1,
                                  1024);
}

}  // namespace

Core::Core(Nested<FeatureConfig> features, const std::optional<Optimizer>& optimizer,
           StrategyPtr strategy, EmbeddingOptions options, std::shared_ptr<Executor> executor)
    : features_(std::move(features)),
      options_(checked(std::move(options))),
      strategy_(std::move(strategy)),
      assembly_(assemble(features_, optimizer, strategy_ != nullptr)),
      replicas_(strategy_ ? strategy_->replicas() : 1),
      cores_per_replica_(strategy_ ? strategy_->cores_per_replica() : 1),
      cores_(replicas_ * cores_per_replica_),
      hosts_(strategy_ ? strategy_->options().hosts : 1),
      executor_(strategy_ ? strategy_->options().executor : executor),
      shapes_(features_.structure(), configured_shapes(features_)),
      specs_(make_specs(features_, assembly_, options_)),
      schedule_({.replicas = replicas_,
                 .cores_per_replica = cores_per_replica_,
                 .features = features_.size(),
                 .hosts = hosts_,
                 .capacity = options_.queue_capacity,
                 .pipelined = options_.pipeline_execution_with_tensor_core,
                 .timeout = timeout_of(strategy_)}),
      at_dequeue_(replicas_, timeout_of(strategy_)),
      at_apply_(replicas_, timeout_of(strategy_)),
      pool_(std::make_shared<ActivationPool>()),
      unique_share_(assembly_.tables.size()),
      sequential_(replicas_),
      given_(replicas_) {
  check_revision();
  if (!executor_) executor_ = make_thread_pool(default_threads());
  checkpoint::check_configuration(manifest());
  for (std::atomic<double>& share : unique_share_) share = 1;
  for (const ResolvedTable& table : assembly_.tables) {
    if (!table.identity->name) warn("table '" + table.name() + "' has no name of its own");
    if (table.rule && table.rule->keeps_rows_of_zeros() && table.config.initializer->is_zero()) {
      warn("table '" + table.name() + "' starts at zero, and " + table.optimizer->rule() +
           " never moves a row of zeros");
    }
  }
}

/// No thread is in a step, but some may wait for others that will not come; in a forked process
/// there are none.
Core::~Core() {
  if (!home_.left()) {
    schedule_.close();
    at_dequeue_.close();
    at_apply_.close();
  }
  if (strategy_ && strategy_->tables_ == tables_) strategy_->tables_.reset();
}

void Core::require_accelerated(std::string_view call) const {
  if (!accelerated())
    throw StateError(std::string(call) + ": needs an engine with a strategy, this one is plain");
}

void Core::require_built(std::string_view call) const {
  if (!built_)
    throw StateError(std::string(call) +
                     ": the engine is not built; call build or enqueue a batch");
}

void Core::require_home(std::string_view call) const {
  if (home_.left()) home_.check(std::string(call) + ": the engine");  // a steady step needs no text
}

void Core::require_sound(std::string_view call) const {
  const std::lock_guard lock(failing_);
  if (!failed_.empty()) throw StateError(std::string(call) + ": the engine failed " + failed_);
}

void Core::warn(const std::string& text) const {
  if (options_.log) options_.log(text);
}

Tables& Core::held_tables() const {
  const std::shared_ptr<Tables>& held = accelerated() ? strategy_->tables_ : tables_;
  if (!held)
    throw StateError("the strategy was initialized anew: the tables of this engine are gone");
  return *held;
}

void Core::require_alike(const Tables& held, std::string_view call) const {
  for (std::size_t t = 0; t < std::max(assembly_.tables.size(), held.tables().size()); ++t) {
    std::string ours = "none", theirs = "none";
    if (t < assembly_.tables.size()) {
      const ResolvedTable& table = assembly_.tables[t];
      ours = outline(table.name(), table.config.vocabulary_size, table.config.dim, table.slots());
    }
    if (t < held.tables().size()) {
      const StoredTable& table = held.tables()[t];
      theirs = outline(table.name, table.vocabulary_size, table.dim, table.slots);
    }
    if (ours == theirs) continue;
    throw StateError(std::string(call) +
                     ": the strategy holds the tables of another engine, and they are not alike: "
                     "table " +
                     std::to_string(t) + " must be " + ours + ", got " + theirs);
  }
}

Tables& Core::tables() const {
  Tables& held = held_tables();
  if (&held != tables_.get()) throw StateError("the strategy holds the tables of another engine");
  return held;
}

void Core::use_shapes(std::span<const Shape> shapes) {
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    shapes_[static_cast<std::int64_t>(i)] = shapes[i];
    specs_[i].output_shape = shapes[i];
  }
}

/// Several cores of a replica stand one after the other on axis 0.
void Core::check_shapes_of_cores(std::span<const Shape> shapes) const {
  for (std::size_t i = 0; cores_per_replica_ > 1 && i < shapes.size(); ++i) {
    if (shapes[i].rank() > 0) continue;
    throw ValueError("feature '" + features_.path(static_cast<std::int64_t>(i)) +
                     "': output shape must have rank >= 1 where a replica has " +
                     std::to_string(cores_per_replica_) + " cores, got " + shapes[i].to_string());
  }
}

void Core::build(std::span<const Shape> incoming) {
  if (built_) return;
  std::vector<Shape> shapes;
  if (accelerated()) {
    if (strategy_->tables_) {
      throw StateError(
          "build: the strategy holds an initialized engine already, probably of another Embedding");
    }
    check_shapes(features_, shapes_.leaves(), incoming, false);
    shapes = resolve_shapes(features_, shapes_.leaves(), incoming, options_.merge_partial_shapes);
    check_shapes_of_cores(shapes);
    log_configuration(shapes);
  }
  std::shared_ptr<Tables> tables = tables_;
  if (!tables) {
    tables = std::make_shared<Tables>(assembly_.tables, hosts_, sharding());
    tables->initialize(assembly_.tables, options_.seed, *executor_);
  }
  if (accelerated()) {
    team_ = make_team();
    tables->settle = [this] {
      const auto lock = lock_steps("save");
      flush();
    };
    strategy_->tables_ = tables;
    use_shapes(shapes);
  }
  tables_ = std::move(tables);
  built_ = true;
}

Topology Core::topology() const {
  return {.hosts = hosts_,
          .replicas = replicas_,
          .cores_per_replica = strategy_->options().cores_per_replica,
          .sharding = sharding(),
          .pipeline = options_.pipeline_execution_with_tensor_core,
          .one_batch_size = options_.revision == ApiRevision::kBatchSize};
}

void Core::log_configuration(std::span<const Shape> shapes) const {
  const auto& log = options_.log_configuration;
  if (!log) return;
  wire::TPUEmbeddingConfiguration configuration;
  try {
    configuration = by_revision(describe(assembly_, features_, shapes, topology()));
  } catch (const std::logic_error& error) {
    return log(std::string("no configuration: ") + error.what());
  }
  wire::log_lines(configuration, log);
}

Sharding Core::sharding() const noexcept {
  return accelerated() ? strategy_->options().sharding : Sharding::kDiv;
}

std::unique_ptr<HostTeam> Core::make_team() const {
  std::vector<std::unique_ptr<Host>> hosts;
  for (auto& exchange : make_exchanges(hosts_, strategy_->options().timeout)) {
    hosts.push_back(std::make_unique<Host>(std::move(exchange), executor_, assembly_,
                                           cores_ / hosts_, options_.tuning,
                                           options_.count_unique_ids));
  }
  return std::make_unique<HostTeam>(std::move(hosts));
}

void Core::build_from_inputs(std::span<const Shape> inputs) {
  require_home("build");
  const std::lock_guard lock(building_);
  if (built_) return;
  if (accelerated() && options_.revision == ApiRevision::kBatchSize) {
    throw ValueError(
        "build: the batch-size revision takes a per_replica_batch_size, got per_replica_input_"
        "shapes");
  }
  build(accelerated() ? shapes_from_inputs(features_, inputs) : std::vector<Shape>());
}

void Core::build_from_batch_size(std::int64_t batch_size) {
  require_home("build");
  const std::lock_guard lock(building_);
  if (built_) return;
  if (batch_size < 0)
    throw ValueError("build: per_replica_batch_size must be >= 0, got " +
                     std::to_string(batch_size));
  if (accelerated() && batch_size == 0 && options_.revision == ApiRevision::kBatchSize)
    throw ValueError("build: the batch-size revision takes a per_replica_batch_size, got none");
  build(accelerated() && batch_size > 0 ? shapes_from_batch_size(features_, batch_size)
                                        : std::vector<Shape>());
}

std::map<TablePtr, TableView> Core::table_views() {
  if (accelerated()) {
    throw StateError(
        "embedding_tables: an engine with a strategy owns its tables; use read_rows and "
        "assign_rows");
  }
  build_from_batch_size(0);
  std::map<TablePtr, TableView> views;
  for (std::size_t t = 0; t < assembly_.tables.size(); ++t) {
    const RowBlock& rows = tables_->tables()[t].shards.front().block();
    views[assembly_.tables[t].identity] = {rows.row, rows.rows, rows.stride, rows.dim};
  }
  return views;
}

ShardedVariable Core::sharded_variable(std::string_view variable) {
  if (!accelerated()) build_from_batch_size(0);
  const Tables& tables = settled_tables("sharded_variable");
  return tables.view(tables.find(variable), !accelerated(), executor_);
}

std::vector<TableInfo> Core::table_info() const {
  return engine::table_info(assembly_, !accelerated());
}

wire::TPUEmbeddingConfiguration Core::configuration() const {
  require_accelerated("configuration");
  require_built("configuration");
  return by_revision(describe(assembly_, features_, shapes_.leaves(), topology()));
}

MemoryReport Core::memory() const {
  require_home("memory");
  const std::lock_guard no_build(building_);
  const std::lock_guard no_step(stepping_);
  MemoryReport report;
  if (tables_) tables_->report(report);
  MemoryReport::Entry scratch;
  scratch.name = "scratch";
  scratch.bytes = schedule_.scratch_bytes() + pool_->bytes();
  for (std::int32_t host = 0; team_ && host < team_->size(); ++host)
    scratch.bytes += team_->host(host).scratch_bytes();
  report.total_bytes += scratch.bytes;
  report.entries.push_back(std::move(scratch));
  return report;
}

}  // namespace embertable::engine
