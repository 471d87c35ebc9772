#include "engine/setup/manifest_of.h"

#include <span>
#include <string>

#include "embertable/version.h"

namespace embertable::engine {
namespace {

checkpoint::SavedOptimizer saved(const Optimizer& optimizer) {
  checkpoint::SavedOptimizer saved{
      optimizer.rule(), optimizer.to_string(), {}, optimizer.parameters()};
  if (!optimizer.learning_rate().is_dynamic())
    saved.learning_rate = optimizer.learning_rate().constant();
  return saved;
}

checkpoint::SavedTable saved(const ResolvedTable& table) {
  checkpoint::SavedTable saved_table{table.name(),
                                     table.config.vocabulary_size,
                                     table.config.dim,
                                     std::string(to_string(table.config.combiner)),
                                     table.config.initializer->to_string(),
                                     table.config.quantization_config,
                                     {},
                                     {},
                                     table.config.row_type};
  if (table.optimizer) saved_table.optimizer = saved(*table.optimizer);
  for (const RuleSlot& slot : table.slots())
    saved_table.slots.push_back({std::string(slot.name), slot.row_wise});
  return saved_table;
}

checkpoint::SavedFeature saved(const FeatureConfig& feature, const std::string& path,
                               std::int64_t table) {
  checkpoint::SavedFeature saved_feature;
  saved_feature.path = path;
  saved_feature.name = feature.name;
  saved_feature.table = table;
  saved_feature.max_sequence_length = feature.max_sequence_length;
  saved_feature.validate_weights_and_indices = feature.validate_weights_and_indices;
  if (feature.output_shape.has_rank()) {
    const std::span<const std::int64_t> dims = feature.output_shape.dims();
    saved_feature.output_shape.emplace(dims.begin(), dims.end());
  }
  return saved_feature;
}

}  // namespace

checkpoint::Manifest manifest_of(const Setup& setup, std::int64_t step) {
  checkpoint::Manifest manifest;
  manifest.library = kVersion;
  manifest.numerics_version = kNumericsVersion;
  manifest.step = step;
  manifest.topology.hosts = setup.all_hosts;
  manifest.topology.replicas_per_host = setup.replicas / setup.hosts;
  manifest.topology.sharding = setup.sharding();
  manifest.seed = setup.options.seed;
  manifest.pipeline_execution = setup.options.pipeline_execution_with_tensor_core;
  for (const ResolvedTable& table : setup.assembly.tables) manifest.tables.push_back(saved(table));
  for (std::int64_t i = 0; i < setup.features.size(); ++i) {
    manifest.features.push_back(
        saved(setup.features[i], setup.features.path(i), setup.assembly.table_of[i]));
  }
  return manifest;
}

}  // namespace embertable::engine
