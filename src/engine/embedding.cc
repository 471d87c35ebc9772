#include "embertable/embedding.h"

#include <algorithm>

#include "checkpoint/run_directory.h"
#include "embertable/variables/sharded_variable.h"
#include "engine/core.h"

namespace embertable {

Embedding::Embedding(Nested<FeatureConfig> feature_config,
                     const std::optional<Optimizer>& optimizer, StrategyPtr strategy,
                     EmbeddingOptions options)
    : core_(std::make_unique<engine::Core>(std::move(feature_config), optimizer,
                                           std::move(strategy), std::move(options))) {}
Embedding::~Embedding() = default;
Embedding::Embedding(Embedding&&) noexcept = default;
Embedding& Embedding::operator=(Embedding&&) noexcept = default;

bool Embedding::accelerated() const noexcept { return core_->accelerated(); }
bool Embedding::built() const noexcept { return core_->built(); }
bool Embedding::verify_output_shapes_on_enqueue() const noexcept { return core_->verify; }
void Embedding::set_verify_output_shapes_on_enqueue(bool verify) { core_->verify = verify; }

void Embedding::build() { core_->build_from_batch_size(0); }
void Embedding::build(std::int64_t per_replica_batch_size) {
  core_->build_from_batch_size(per_replica_batch_size);
}
void Embedding::build(const Nested<Shape>& per_replica_input_shapes, std::int64_t) {
  core_->build_from_inputs(per_replica_input_shapes.leaves());
}

std::map<TablePtr, TableView> Embedding::embedding_tables() { return core_->table_views(); }

ShardedVariable Embedding::sharded_variable(std::string_view variable) {
  return core_->sharded_variable(variable);
}

void Embedding::enqueue(std::span<const Batch> batches, bool training, std::string_view name) {
  core_->enqueue(batches, training, name);
}
void Embedding::enqueue(const Batch& batch, bool training, std::string_view name) {
  core_->enqueue(std::span(&batch, 1), training, name);
}

void Embedding::enqueue(std::span<const Batch> batches, const EnqueueOptions& options) {
  core_->enqueue(batches, options);
}
void Embedding::enqueue(const Batch& batch, const EnqueueOptions& options) {
  core_->enqueue(std::span(&batch, 1), options);
}

Activations Embedding::dequeue(const DequeueOptions& options) { return core_->dequeue(options); }
void Embedding::dequeue(std::span<const std::span<float>> out, const DequeueOptions& options) {
  core_->dequeue(out, options);
}

void Embedding::apply_gradients(std::span<const Nested<Gradient>> gradients) {
  core_->apply_gradients(gradients);
}
void Embedding::apply_gradients(const Nested<Gradient>& gradients) {
  core_->apply_gradients(std::span(&gradients, 1));
}

void Embedding::Replica::enqueue(const Batch& batch, bool training, std::string_view name) {
  core_->enqueue(index_, batch, training, name);
}
void Embedding::Replica::enqueue(const Batch& batch, const EnqueueOptions& options) {
  core_->enqueue(index_, batch, options);
}
Activations Embedding::Replica::dequeue(const DequeueOptions& options) {
  return core_->dequeue(index_, options);
}
void Embedding::Replica::apply_gradients(const Nested<Gradient>& gradients) {
  core_->apply_gradients(index_, gradients);
}

Embedding::Replica Embedding::replica(std::int32_t index) {
  if (!accelerated())
    throw StateError("replica: needs an engine with a strategy, this one is plain");
  if (index < 0 || index >= core_->replicas()) {
    throw ValueError("replica: index must be 0 <= index < " + std::to_string(core_->replicas()) +
                     ", got " + std::to_string(index));
  }
  return Replica(core_.get(), index);
}

LookupResult Embedding::look_up(std::span<const Batch> batches, bool training) {
  return core_->look_up(batches, training);
}
LookupResult Embedding::look_up(const Batch& batch, bool training) {
  return core_->look_up(std::span(&batch, 1), training);
}
void Embedding::apply_gradients(LookupToken&& token, std::span<const Nested<Gradient>> gradients) {
  core_->apply_gradients(std::move(token), gradients);
}
void Embedding::apply_gradients(LookupToken&& token, const Nested<Gradient>& gradients) {
  core_->apply_gradients(std::move(token), std::span(&gradients, 1));
}

void Embedding::read_rows(std::string_view variable, IntegerSpan ids, std::span<float> out) const {
  const engine::Tables& tables = core_->settled_tables("read_rows");
  tables.read_rows(tables.find(variable), ids, out);
}
void Embedding::assign_rows(std::string_view variable, IntegerSpan ids,
                            std::span<const float> values) {
  engine::Tables& tables = core_->settled_tables("assign_rows");
  tables.assign_rows(tables.find(variable), ids, values);
}

std::filesystem::path Embedding::save(const CheckpointRun& run, const CallerState& state,
                                      const std::map<std::string, IdMap>& id_maps) const {
  return core_->save(*run.run_, state, id_maps);
}
std::filesystem::path Embedding::save(const std::filesystem::path& run, const CallerState& state,
                                      const std::map<std::string, IdMap>& id_maps) const {
  return core_->save(checkpoint::OpenRun(checkpoint::local_files(), run), state, id_maps);
}
RestoreReport Embedding::restore(const std::filesystem::path& path, const RestoreOptions& options) {
  return core_->restore(checkpoint::local_files(), path, options);
}
std::string Embedding::digest() const { return core_->digest(); }

std::vector<TableInfo> Embedding::tables() const { return core_->table_info(); }
const Nested<Shape>& Embedding::output_shapes() const { return core_->shapes(); }
const Nested<FeatureConfig>& Embedding::feature_config() const noexcept {
  return core_->features();
}
GradientSumsOfTable Embedding::gradient_sums(std::string_view table) const {
  return core_->gradient_sums(table);
}

wire::TPUEmbeddingConfiguration Embedding::configuration() const { return core_->configuration(); }
std::int64_t Embedding::step() const noexcept { return core_->step(); }
MemoryReport Embedding::memory() const { return core_->memory(); }
const StepStatistics& Embedding::last_step() const noexcept { return core_->statistics(); }

}  // namespace embertable
