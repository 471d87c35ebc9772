// Serialized configurations. What is read is written so that it reads the same, and whatever else
// asks about it answers or refuses.

#include <cstdlib>
#include <optional>
#include <string>

#include "embertable/errors.h"
#include "embertable/tensorflow/optimizer_messages.h"
#include "embertable/tensorflow/tpu_embedding_configuration.h"
#include "fuzz/target.h"
#include "tensorflow/wire/algorithms.h"

namespace {

using namespace embertable;        // NOLINT: a program
using namespace embertable::wire;  // NOLINT

/// A refusal that nobody catches is a failure.
void come_back(const TPUEmbeddingConfiguration& configuration) {
  const std::string written = serialize(configuration);
  if (serialize(parse_configuration(written)) != written) std::abort();
}

void ask(const TPUEmbeddingConfiguration& configuration) {
  to_text(configuration);
  std::optional<TPUEmbeddingConfiguration> whole;
  try {
    whole = complete(configuration);
  } catch (const ValueError&) {
  }
  if (whole) come_back(*whole);
  try {
    activation_shapes(configuration);
  } catch (const ValueError&) {
  }
  try {
    num_dynamic_inputs(configuration);
  } catch (const ValueError&) {
  }
  for (const TableDescriptor& table : configuration.table_descriptor) {
    try {
      if (table.optimization_parameters) state_variables(*table.optimization_parameters);
    } catch (const ValueError&) {
    }
  }
}

/// One table for each algorithm, each with all that an optimizer may have.
template <std::size_t... kIndex>
TPUEmbeddingConfiguration every_algorithm(std::index_sequence<kIndex...>) {
  OptimizationParameters common = {
      .clipping_limits = ClippingLimits{-1.0f, 1.0f, {}},
      .gradient_clipping_limits = ClippingLimits{{}, 0.0f, {}},
      .learning_rate = wire::LearningRate{.learning_rate = OptimizerDynamicInput{.tag = 0}},
      .weight_decay_factor = 0.5f,
      .gradient_accumulation_status = Status::kDisabled,
      .hot_id_replication_configuration = HotIdReplicationConfiguration{},
      .multiply_weight_decay_factor_by_learning_rate = true,
      .simulated_quantization = SimulatedQuantization{.enabled = true, .num_buckets = 5},
      .low_dimensional_packing_status = Status::kEnabled};
  TPUEmbeddingConfiguration all;
  const auto add = [&](Parameters parameters) {
    common.parameters = std::move(parameters);
    all.table_descriptor.push_back(
        {.name = std::string(kAlgorithms[common.parameters.index()].name),
         .vocabulary_size = 8,
         .dimension = 4,
         .optimization_parameters = common});
  };
  (add(Parameters(std::in_place_index<kIndex>)), ...);
  return all;
}

TPUEmbeddingConfiguration described() {
  auto all = every_algorithm(std::make_index_sequence<std::variant_size_v<Parameters>>());
  for (std::size_t t = 0; t < all.table_descriptor.size(); ++t) {
    all.feature_descriptor.push_back(
        {.name = "f", .table_id = static_cast<std::int32_t>(t), .input_shape = {4, 2}});
  }
  all.spmd_sharding = SpmdSharding{.enabled = true, .num_cores_per_replica = 2};
  return all;
}

TPUEmbeddingConfiguration counted() {
  TPUEmbeddingConfiguration one;
  one.table_descriptor.push_back({.name = "t", .dimension = 8, .num_features = 3});
  one.batch_size_per_tensor_core = 256;
  one.num_tensor_cores = -2;
  one.profile_data_directory = "d";
  one.unknown_fields = "\xa3\x06\x08\x01\xa4\x06";  // a group
  return one;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  std::optional<TPUEmbeddingConfiguration> read;
  try {
    read = parse_configuration(bytes);
  } catch (const ValueError&) {
    return 0;
  }
  come_back(*read);
  ask(*read);
  return 0;
}

std::vector<std::string> fuzz::seeds() { return {serialize(described()), serialize(counted())}; }
