#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "embertable/tensorflow/v1.h"

namespace embertable::v1 {

/// The arguments of a `TPUEmbedding`, checked, and the configuration of the engine underneath that
/// follows from them.
class Configuration {
 public:
  /// Throws as TPUEmbedding's constructor.
  Configuration(TPUEmbedding::Tables of_tables, TPUEmbedding::Features of_features,
                std::int64_t of_batch, Mode of_mode,
                const std::optional<OptimizationParameters>& parameters, Options of_options);

  const TPUEmbedding::Tables tables;
  const TPUEmbedding::Features features;
  const std::int64_t batch_size;
  const Mode mode;
  const Options options;
  const Sharding sharding;

  /// Returns the size of a core's batch, which fits 32 bits.
  std::int64_t batch_size_per_core() const { return batch_size / options.device_config.num_cores; }
  bool asks_for_step() const;  ///< some table has a learning_rate_fn
  void set_step(std::int64_t global_step) const { *step_ = global_step; }

  const OptimizationParameters& parameters_of(const TableConfig& table) const;

  /// Returns the table's optimizer with its own rate.
  Optimizer optimizer_of(const std::string& name) const { return optimizers_.at(name); }

  InterleavedLayout layout() const;
  Embedding engine() const;

 private:
  void check_features() const;
  void check_machine() const;
  void check_mode(const std::optional<OptimizationParameters>& parameters) const;
  void resolve_optimizers();

  std::optional<OptimizationParameters> parameters_;  ///< parameters of tables without their own
  std::shared_ptr<std::int64_t> step_ = std::make_shared<std::int64_t>(0);  ///< rates read it
  std::map<std::string, Optimizer> optimizers_;
};

/// Returns the configuration that an accelerator is told: see TPUEmbedding::configuration.
wire::TPUEmbeddingConfiguration describe(const Configuration& configuration);

}  // namespace embertable::v1
