#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "embertable/shape.h"
#include "embertable/strategy.h"
#include "embertable/tensorflow/tpu_embedding_configuration.h"
#include "engine/setup/assembly.h"

namespace embertable::engine {

/// The part of a configuration that describes the machine.
struct Machine {
  std::int32_t hosts = 1;
  std::int32_t replicas = 1;
  std::optional<std::int32_t> cores_per_replica;  ///< none: cores are not assigned to replicas
  Sharding sharding = Sharding::kDiv;
  bool pipeline = false;
  bool one_batch_size = false;  ///< one for all features, which are counted instead of described
};

/// Returns the configuration of these tables and features in mode TRAINING. `shapes`: by feature.
/// Inputs are tagged by first use, functions first, then step counters that are not functions.
/// Throws NotImplemented naming table and rule for a rule that the proto does not have, ValueError
/// naming the feature for a shape that is not known or has a dim beyond 32 bits. Source: TF
/// tpu_embedding_v2.py, _create_config_proto.
wire::TPUEmbeddingConfiguration describe(const Assembly& assembly,
                                         const Nested<FeatureConfig>& features,
                                         std::span<const Shape> shapes, const Machine& machine);

}  // namespace embertable::engine
