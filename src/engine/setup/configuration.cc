#include "engine/setup/configuration.h"

#include <algorithm>
#include <limits>

#include "embertable/errors.h"
#include "embertable/tensorflow/optimizer_messages.h"

namespace embertable::engine {
namespace {

using wire::TPUEmbeddingConfiguration;
using Inputs = std::vector<LearningRate>;

/// Returns the rate's position among the inputs, and appends it if it is new.
std::int32_t tag(Inputs& inputs, const LearningRate& rate) {
  const auto known = std::ranges::find(inputs, rate);
  const auto position = static_cast<std::int32_t>(known - inputs.begin());
  if (known == inputs.end()) inputs.push_back(rate);
  return position;
}

/// Returns what the rule counts steps by, if it counts them.
std::optional<LearningRate> step_counter(const ResolvedTable& table) {
  static const LearningRate number =
      LearningRate::scheduled([](std::int64_t step) { return static_cast<double>(step); });
  if (!table.rule->counts_steps()) return {};
  return table.optimizer->options().step_counter.value_or(number);
}

/// Returns the functions of all tables in the order of their first use.
Inputs functions(const Assembly& assembly) {
  Inputs inputs;
  for (const ResolvedTable& table : assembly.tables) {
    const LearningRate& rate = table.optimizer->learning_rate();
    if (rate.is_dynamic()) tag(inputs, rate);
    const auto& counter = table.optimizer->options().step_counter;
    if (table.rule->counts_steps() && counter && counter->is_dynamic()) tag(inputs, *counter);
  }
  return inputs;
}

wire::OptimizationParameters parameters_of(const ResolvedTable& table, Inputs& inputs) {
  const Optimizer& optimizer = *table.optimizer;
  wire::OptimizerTags tags;
  if (optimizer.learning_rate().is_dynamic())
    tags.learning_rate = tag(inputs, optimizer.learning_rate());
  if (const auto counter = step_counter(table)) tags.step_counter = tag(inputs, *counter);
  try {
    wire::OptimizationParameters message = wire::to_message(optimizer, tags);
    if (const auto& quantization = table.config.quantization_config)
      message.simulated_quantization = wire::to_message(*quantization);
    return message;
  } catch (const NotImplemented& error) {
    throw NotImplemented("table '" + table.name() + "': " + error.what());
  }
}

std::vector<std::int32_t> dims_of(const Shape& shape, const std::string& path) {
  std::vector<std::int32_t> dims;
  for (const std::int64_t dim : shape.dims()) {
    if (dim < 0 || dim > std::numeric_limits<std::int32_t>::max()) {
      throw ValueError("feature '" + path +
                       "': every dim of the output shape must fit 32 bits, got " +
                       shape.to_string());
    }
    dims.push_back(static_cast<std::int32_t>(dim));
  }
  return dims;
}

/// Writes batch size and num_features instead of descriptors, as release 2.4 does.
void count_features(TPUEmbeddingConfiguration& configuration) {
  for (const wire::FeatureDescriptor& feature : configuration.feature_descriptor) {
    const std::vector<std::int32_t>& shape = feature.input_shape;  // [batch size] or with a length
    configuration.batch_size_per_tensor_core = shape.at(0);
    auto& table = configuration.table_descriptor[feature.table_id];
    if (__builtin_add_overflow(table.num_features, shape.size() > 1 ? shape[1] : 1,
                               &table.num_features))
      throw ValueError("table '" + table.name + "': num_features must fit 32 bits");
  }
  configuration.feature_descriptor.clear();
}

void describe_tables(TPUEmbeddingConfiguration& configuration, const Assembly& assembly,
                     std::int32_t hosts) {
  Inputs inputs = functions(assembly);
  for (const ResolvedTable& table : assembly.tables) {
    configuration.table_descriptor.push_back(
        {.name = table.name(),
         .vocabulary_size = std::max<std::int64_t>(table.config.vocabulary_size, hosts),
         .dimension = table.config.dim,
         .optimization_parameters = parameters_of(table, inputs)});
  }
}

}  // namespace

TPUEmbeddingConfiguration describe(const Assembly& assembly, const Nested<FeatureConfig>& features,
                                   std::span<const Shape> shapes, const Machine& machine) {
  TPUEmbeddingConfiguration configuration;
  describe_tables(configuration, assembly, machine.hosts);
  for (std::int64_t i = 0; i < features.size(); ++i) {
    const std::int64_t table = assembly.table_of[i];
    configuration.feature_descriptor.push_back(
        {.name = features[i].name.value_or(""),
         .table_id = static_cast<std::int32_t>(table),
         .input_shape = dims_of(shapes[i], features.path(i))});
  }
  if (machine.one_batch_size) count_features(configuration);
  configuration.mode = TPUEmbeddingConfiguration::Mode::kTraining;
  configuration.num_hosts = machine.hosts;
  configuration.num_tensor_cores = machine.replicas * machine.cores_per_replica.value_or(1);
  if (machine.sharding == Sharding::kMod)
    configuration.sharding_strategy = TPUEmbeddingConfiguration::ShardingStrategy::kMod;
  configuration.pipeline_execution_with_tensor_core = machine.pipeline;
  if (machine.cores_per_replica) {
    configuration.spmd_sharding =
        wire::SpmdSharding{.enabled = true, .num_cores_per_replica = *machine.cores_per_replica};
  }
  return configuration;
}

}  // namespace embertable::engine
