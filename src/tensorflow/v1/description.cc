// Describes an engine of the v1 API as an accelerator is told. Source: TF tpu_embedding.py,
// TPUEmbedding._create_config_proto.
#include <algorithm>

#include "base/int32_of.h"
#include "embertable/tensorflow/optimizer_messages.h"
#include "embertable/tensorflow/tpu_embedding_configuration.h"
#include "tensorflow/v1/configuration.h"

namespace embertable::v1 {
namespace {

using wire::TPUEmbeddingConfiguration;

/// Returns the functions of all tables, by tag.
std::vector<const LearningRateFunction*> functions(const TPUEmbedding::Tables& tables) {
  std::vector<const LearningRateFunction*> all;
  for (const auto& [name, table] : tables) {
    const LearningRateFunction* const function = table.learning_rate_fn.get();
    if (function != nullptr && std::ranges::find(all, function) == all.end())
      all.push_back(function);
  }
  return all;
}

wire::OptimizationParameters message_of(const Configuration& configuration, const std::string& name,
                                        const TableConfig& table) {
  wire::OptimizerTags tags;
  const auto all = functions(configuration.tables);
  const auto at = std::ranges::find(all, table.learning_rate_fn.get());
  if (at != all.end()) tags.learning_rate = static_cast<std::int32_t>(at - all.begin());
  wire::OptimizationParameters message = wire::to_message(configuration.optimizer_of(name), tags);
  // The message gets the value that was given, not the one that the rule needs.
  if (const auto* ftrl = std::get_if<FtrlParameters>(&configuration.parameters_of(table)))
    std::get<wire::FtrlParameters>(message.parameters).allow_zero_accumulator =
        ftrl->allow_zero_accumulator;
  if (table.hot_id_replication) {
    message.hot_id_replication_configuration.emplace().status =
        wire::HotIdReplicationConfiguration::Status::kEnabled;
  }
  return message;
}

}  // namespace

TPUEmbeddingConfiguration describe(const Configuration& configuration) {
  TPUEmbeddingConfiguration record;
  const InterleavedLayout layout = configuration.layout();
  const DeviceConfig& machine = configuration.options.device_config;
  for (const InterleavedLayout::PlacedTable& placed : layout.tables()) {
    const TableConfig& table = configuration.tables.at(placed.name);
    record.table_descriptor.push_back(
        {.name = placed.name,
         .vocabulary_size = std::max<std::int64_t>(table.vocabulary_size, machine.num_hosts),
         .dimension = table.dimension,
         .num_features =
             int32_of(placed.num_features, "table '" + placed.name + "'", "num_features"),
         .optimization_parameters = message_of(configuration, placed.name, table)});
  }
  record.mode = static_cast<TPUEmbeddingConfiguration::Mode>(configuration.mode);
  record.batch_size_per_tensor_core =
      static_cast<std::int32_t>(configuration.batch_size_per_core());
  record.num_hosts = machine.num_hosts;
  record.num_tensor_cores = machine.num_cores;
  if (configuration.sharding == Sharding::kMod)
    record.sharding_strategy = TPUEmbeddingConfiguration::ShardingStrategy::kMod;
  record.pipeline_execution_with_tensor_core =
      configuration.options.engine.pipeline_execution_with_tensor_core;
  record.profile_data_directory = configuration.options.profile_data_directory;
  return record;
}

}  // namespace embertable::v1
