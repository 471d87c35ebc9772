#include "embertable/direct_embedding.h"

#include <utility>

#include "embertable/optimizer.h"
#include "engine/save.h"
#include "optimizer/slots_only.h"
#include "serving/direct.h"

namespace embertable {

using direct::Direct;

Optimizer slots_only(std::vector<std::string> slot_names, SlotInitializer create) {
  CustomRule rule;
  rule.name = "slots_only";
  rule.slot_initializers.assign(slot_names.size(), Initializer::zeros());
  rule.slot_names = std::move(slot_names);
  rule.function = CustomRule::Rows(StepsNoRow());
  OptimizerOptions options;
  if (create)
    options.slot_variable_creation_fn = std::make_shared<const SlotInitializer>(std::move(create));
  return Optimizer::custom(std::move(rule), 0.0, std::move(options));
}

DirectEmbedding::DirectEmbedding(Nested<FeatureConfig> feature_config,
                                 const std::optional<Optimizer>& optimizer, StrategyPtr strategy,
                                 DirectOptions options)
    : direct_(std::make_unique<Direct>(std::move(feature_config), optimizer, std::move(strategy),
                                       std::move(options))) {}
DirectEmbedding::~DirectEmbedding() = default;
DirectEmbedding::DirectEmbedding(DirectEmbedding&&) noexcept = default;
DirectEmbedding& DirectEmbedding::operator=(DirectEmbedding&&) noexcept = default;

const Nested<FeatureConfig>& DirectEmbedding::feature_config() const noexcept {
  return direct_->setup().features;
}
std::vector<TableInfo> DirectEmbedding::tables() const {
  return engine::table_info(direct_->setup().assembly, true);
}
std::int32_t DirectEmbedding::replicas() const noexcept { return direct_->replicas(); }
bool DirectEmbedding::built() const noexcept { return direct_->store().built(); }
void DirectEmbedding::build() { direct_->build(); }
std::map<TablePtr, TableView> DirectEmbedding::embedding_tables() { return direct_->table_views(); }

LookupOutput DirectEmbedding::embedding_lookup(const Batch& inputs) {
  LookupOutput output;
  direct_->look_up(inputs, output);
  return output;
}
void DirectEmbedding::embedding_lookup(const Batch& inputs, LookupOutput& output) {
  direct_->look_up(inputs, output);
}
std::vector<LookupOutput> DirectEmbedding::embedding_lookup(std::span<const Batch> inputs) {
  std::vector<LookupOutput> outputs(replicas());
  direct_->look_up(inputs, outputs);
  return outputs;
}
void DirectEmbedding::embedding_lookup(std::span<const Batch> inputs,
                                       std::span<LookupOutput> outputs) {
  direct_->look_up(inputs, outputs);
}

std::map<TablePtr, GradientSumsOfTable> DirectEmbedding::gradients(
    std::span<const LookupOutput> lookups, std::span<const Nested<Gradient>> upstream) {
  const LookupGradients all{lookups, upstream};
  return gradients(std::span(&all, 1));
}
std::map<TablePtr, GradientSumsOfTable> DirectEmbedding::gradients(
    std::span<const LookupGradients> parts) {
  return direct_->gradients(parts);
}
void DirectEmbedding::apply_gradients(std::span<const LookupOutput> lookups,
                                      std::span<const Nested<Gradient>> upstream) {
  const LookupGradients all{lookups, upstream};
  apply_gradients(std::span(&all, 1));
}
void DirectEmbedding::apply_gradients(std::span<const LookupGradients> parts) {
  direct_->apply_gradients(parts);
}
void DirectEmbedding::apply_gradients(const LookupOutput& lookup,
                                      const Nested<Gradient>& upstream) {
  apply_gradients(std::span(&lookup, 1), std::span(&upstream, 1));
}
void DirectEmbedding::apply_gradients(std::span<const LookupOutput> lookups,
                                      std::span<const Nested<Gradient>> upstream,
                                      const Update& update) {
  const LookupGradients all{lookups, upstream};
  apply_gradients(std::span(&all, 1), update);
}
void DirectEmbedding::apply_gradients(std::span<const LookupGradients> parts,
                                      const Update& update) {
  direct_->apply_gradients(parts, update);
}

std::int64_t DirectEmbedding::step() const noexcept { return direct_->progress().steps().taken(); }

void DirectEmbedding::read_rows(std::string_view variable, IntegerSpan ids, std::span<float> out) {
  direct_->with_tables("read_rows", [&](const engine::Tables& tables) {
    const engine::Tables::Variable found = tables.find(variable);
    tables.read_rows(found, engine::Tables::checked_rows(found, ids, std::ssize(out)), out);
  });
}
void DirectEmbedding::assign_rows(std::string_view variable, IntegerSpan ids,
                                  std::span<const float> values) {
  direct_->with_tables("assign_rows", [&](engine::Tables& tables) {
    const engine::Tables::Variable found = tables.find(variable);
    tables.assign_rows(found, engine::Tables::checked_rows(found, ids, std::ssize(values)), values);
  });
}

std::filesystem::path DirectEmbedding::save(const CheckpointRun& run, const CallerState& state,
                                            const std::map<std::string, IdMap>& id_maps) {
  return direct_->with_tables("save", [&](const engine::Tables& tables) {
    return direct_->save(tables, checkpoint::open_run(run), state, id_maps);
  });
}
std::filesystem::path DirectEmbedding::save(const std::filesystem::path& run,
                                            const CallerState& state,
                                            const std::map<std::string, IdMap>& id_maps) {
  return direct_->with_tables("save", [&](const engine::Tables& tables) {
    return direct_->save(tables, checkpoint::OpenRun(checkpoint::local_files(), run), state,
                         id_maps);
  });
}
RestoreReport DirectEmbedding::restore(const std::filesystem::path& path,
                                       const RestoreOptions& options) {
  return direct_->restore(path, options);
}
std::string DirectEmbedding::digest() {
  return direct_->with_tables(
      "digest", [&](const engine::Tables& tables) { return direct_->digest(tables); });
}

}  // namespace embertable
