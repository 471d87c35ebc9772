#include "embertable/embedding.h"

#include <mutex>
#include <string>
#include <utility>

#include "base/step_number.h"
#include "checkpoint/use_opened.h"
#include "embertable/errors.h"
#include "embertable/tensorflow/sequential_scope.h"
#include "embertable/variables/sharded_variable.h"
#include "engine/engine.h"
#include "engine/host_rows.h"
#include "engine/save.h"

namespace embertable {

using engine::Engine;

Embedding::Embedding(Nested<FeatureConfig> feature_config,
                     const std::optional<Optimizer>& optimizer, StrategyPtr strategy,
                     EmbeddingOptions options)
    : engine_(std::make_unique<Engine>(std::move(feature_config), optimizer, std::move(strategy),
                                       std::move(options))) {}
Embedding::~Embedding() = default;
Embedding::Embedding(Embedding&&) noexcept = default;
Embedding& Embedding::operator=(Embedding&&) noexcept = default;

bool Embedding::accelerated() const noexcept { return engine_->setup.accelerated(); }
bool Embedding::built() const noexcept { return engine_->store.built(); }
bool Embedding::verify_output_shapes_on_enqueue() const noexcept {
  return engine_->intake.shapes().verifies();
}
void Embedding::set_verify_output_shapes_on_enqueue(bool verify) {
  engine_->intake.shapes().set_verifies(verify);
}

void Embedding::build() { engine_->build_from_batch_size(0); }
void Embedding::build(std::int64_t per_replica_batch_size) {
  engine_->build_from_batch_size(per_replica_batch_size);
}
void Embedding::build(const Nested<Shape>& per_replica_input_shapes, std::int64_t) {
  engine_->build_from_inputs(per_replica_input_shapes);
}

std::map<TablePtr, TableView> Embedding::embedding_tables() {
  if (accelerated()) {
    throw StateError(
        "embedding_tables: an engine with a strategy owns its tables; use read_rows and "
        "assign_rows");
  }
  engine_->build_from_batch_size(0);
  engine_->progress.require_not_failed("embedding_tables");
  return engine_->store.views();
}

ShardedVariable Embedding::sharded_variable(std::string_view variable) {
  if (!accelerated()) engine_->build_from_batch_size(0);
  if (engine_->setup.group->several())
    throw NotImplemented(
        "sharded_variable: rows of other processes cannot be viewed; read_rows copies them");
  const auto [held, no_step, tables, count] = engine_->settled_tables("sharded_variable");
  return tables.view(tables.find(variable), !accelerated(), engine_->setup.executor);
}

void Embedding::enqueue(std::span<const Batch> batches, const EnqueueOptions& options) {
  engine_->enqueue(batches, options);
}
void Embedding::enqueue(const Batch& batch, const EnqueueOptions& options) {
  enqueue(std::span(&batch, 1), options);
}
void Embedding::Replica::enqueue(const Batch& batch, const EnqueueOptions& options) {
  engine_->enqueue(std::span(&batch, 1), options, index_);
}

Activations Embedding::dequeue(const DequeueOptions& options) {
  return Activations(engine_->dequeue(options, SequentialScope::active()).release(), 0,
                     engine_->setup.replicas);
}

void Embedding::dequeue(std::span<const std::span<float>> out, const DequeueOptions& options) {
  engine_->dequeue(options, SequentialScope::active(), out);
}

Activations Embedding::Replica::dequeue(const DequeueOptions& options) {
  return Activations(engine_->dequeue_of(index_, options), index_, 1);
}

void Embedding::apply_gradients(std::span<const Nested<Gradient>> gradients) {
  engine_->apply_gradients([&] { engine::check_gradient_trees(engine_->setup, gradients); },
                           [&](std::int32_t r) -> auto& { return gradients[r]; });
}
void Embedding::apply_gradients(const Nested<Gradient>& gradients) {
  apply_gradients(std::span(&gradients, 1));
}

void Embedding::Replica::apply_gradients(const Nested<Gradient>& gradients) {
  engine_->apply_gradients_of(index_, gradients);
}

Embedding::Replica Embedding::replica(std::int32_t index) {
  engine_->setup.require_accelerated("replica");
  if (index < 0 || index >= engine_->setup.replicas) {
    throw ValueError("replica: index must be 0 <= index < " +
                     std::to_string(engine_->setup.replicas) + ", got " + std::to_string(index));
  }
  return Replica(engine_.get(), index);
}

LookupResult Embedding::look_up(std::span<const Batch> batches, bool training) {
  engine::LentBuffer buffer;
  LookupResult result;
  result.token = {engine_.get(), engine_->look_up(batches, training, buffer)};
  result.activations = Activations(buffer.release(), 0, engine_->setup.replicas);
  return result;
}
LookupResult Embedding::look_up(const Batch& batch, bool training) {
  return look_up(std::span(&batch, 1), training);
}
LookupToken Embedding::look_up(std::span<const Batch> batches,
                               std::span<const std::span<float>> out, bool training) {
  engine::LentBuffer none;
  return {engine_.get(), engine_->look_up(batches, training, none, out)};
}

void Embedding::apply_gradients(LookupToken&& token, std::span<const Nested<Gradient>> gradients) {
  engine_->apply_looked_up(
      [&] {
        if (!token.valid()) throw StateError("apply_gradients: the token is empty, or was used");
        if (token.engine_ != engine_.get())
          throw StateError("apply_gradients: the token is of another engine");
        engine::check_gradient_trees(engine_->setup, gradients);
        return token.step_;
      },
      [&](std::int32_t r) -> auto& { return gradients[r]; },
      [&] { const LookupToken used = std::move(token); });
}
void Embedding::apply_gradients(LookupToken&& token, const Nested<Gradient>& gradients) {
  apply_gradients(std::move(token), std::span(&gradients, 1));
}

void Embedding::abandon_step(std::string_view reason) {
  const auto lock = engine_->runner.lock("abandon_step");
  engine_->setup.group->abandon(reason);
}

std::int64_t Embedding::drop_unmatched_batches() {
  engine_->setup.require_accelerated("drop_unmatched_batches");
  engine_->setup.require_same_process("drop_unmatched_batches");
  engine_->runner.stepping().refuse_reentry();
  engine_->store.building().refuse_reentry();
  return engine_->schedule.drop_unmatched();
}

std::int64_t Embedding::drop_dequeued_batches() {
  engine_->setup.require_accelerated("drop_dequeued_batches");
  const auto lock = engine_->runner.lock("drop_dequeued_batches");
  return engine_->schedule.drop_dequeued();
}

std::int64_t Embedding::drop_queued_batches(std::optional<std::int64_t> steps) {
  engine_->setup.require_accelerated("drop_queued_batches");
  if (steps.value_or(0) < 0)
    throw ValueError("drop_queued_batches: steps must be >= 0, got " + std::to_string(*steps));
  const auto lock = engine_->runner.lock("drop_queued_batches");
  return engine_->runner.drop_queued(steps);
}

std::int64_t Embedding::queued_batches() const {
  engine_->setup.require_same_process("queued_batches");
  return engine_->schedule.queued();
}

std::int64_t Embedding::awaiting_gradients() const {
  engine_->setup.require_same_process("awaiting_gradients");
  return engine_->schedule.lacking_gradients();
}

LookupToken::LookupToken(LookupToken&& other) noexcept
    : engine_(std::exchange(other.engine_, nullptr)), step_(std::exchange(other.step_, nullptr)) {}

LookupToken& LookupToken::operator=(LookupToken&& other) noexcept {
  LookupToken taken(std::move(other));
  std::swap(engine_, taken.engine_);
  std::swap(step_, taken.step_);
  return *this;
}

LookupToken::~LookupToken() {
  // In a forked process another thread of the parent may have held the lock.
  if (step_ && !engine_->setup.process.forked()) engine_->schedule.give_back(step_);
}

void Embedding::read_rows(std::string_view variable, IntegerSpan ids, std::span<float> out) const {
  const auto [held, no_step, tables, count] = engine_->settled_or_restored("read_rows");
  engine::read_rows(*engine_->setup.group, tables, variable, ids, out);
}
void Embedding::assign_rows(std::string_view variable, IntegerSpan ids,
                            std::span<const float> values) {
  const auto [held, no_step, tables, count] = engine_->settled_or_restored("assign_rows");
  engine::assign_rows(*engine_->setup.group, tables, variable, ids, values);
}
void Embedding::assign_step(std::int64_t step) {
  const auto [held, no_step, tables, count] = engine_->settled_or_restored("assign_step");
  engine_->setup.group->together(Stage{"assign_step", step}, [&] {
    if (step < 0 || step > kMostStep)
      throw ValueError("assign_step: step must be 0 to 2^62, got " + std::to_string(step));
  });
  count.set(step);
}

std::filesystem::path Embedding::save(const CheckpointRun& run, const CallerState& state,
                                      const std::map<std::string, IdMap>& id_maps) const {
  const auto [held, no_step, tables, count] = engine_->settled_or_restored("save");
  const bool opens = engine_->setup.group->is_first();
  return engine::save_tables(engine_->setup, tables, count.updates(),
                             {run.directory_, opens ? &checkpoint::open_run(run) : nullptr}, state,
                             id_maps);
}
std::filesystem::path Embedding::save(const std::filesystem::path& run, const CallerState& state,
                                      const std::map<std::string, IdMap>& id_maps) const {
  engine_->require_tables("save");
  return save(engine_->setup.accelerated() ? CheckpointRun(run, *engine_->setup.strategy)
                                           : CheckpointRun(run),
              state, id_maps);
}
RestoreReport Embedding::restore(const std::filesystem::path& path, const RestoreOptions& options) {
  return engine_->restore({checkpoint::local_files(), path}, options);
}
RestoreReport checkpoint::restore_opened(Embedding& engine, const checkpoint::Reader& reader) {
  return engine::engine_of(engine).restore(reader, {});
}
std::string Embedding::digest() const {
  const auto [held, no_step, tables, count] = engine_->settled_or_restored("digest");
  return engine::digest_of(*engine_->setup.group, tables);
}

std::vector<TableInfo> Embedding::tables() const {
  return engine::table_info(engine_->setup.assembly, !accelerated());
}
const Nested<Shape>& Embedding::output_shapes() const {
  return engine_->intake.shapes().by_feature();
}
const Nested<FeatureConfig>& Embedding::feature_config() const noexcept {
  return engine_->setup.features;
}
GradientSumsOfTable Embedding::gradient_sums(std::string_view table) const {
  engine_->setup.require_accelerated("gradient_sums");
  const engine::SettledTables settled = engine_->settled_tables("gradient_sums");
  return engine_->runner.gradient_sums(engine_->store.own(), table);
}

wire::TPUEmbeddingConfiguration Embedding::configuration() const {
  const engine::Setup& setup = engine_->setup;
  setup.require_accelerated("configuration");
  engine_->store.require_built("configuration");
  return engine::describe(setup.assembly, setup.features,
                          engine_->intake.shapes().by_feature().leaves(), setup.machine());
}
std::int64_t Embedding::step() const noexcept { return engine_->progress.steps().taken(); }
MemoryReport Embedding::memory() const { return engine_->memory(); }
StepStatistics Embedding::last_step() const {
  engine_->setup.require_same_process("last_step");
  const std::lock_guard no_step(engine_->runner.stepping());
  return engine_->runner.statistics();
}

}  // namespace embertable
