#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "embertable/batch.h"
#include "embertable/config.h"
#include "embertable/embedding.h"
#include "embertable/optimizer.h"
#include "embertable/tensorflow/interleave.h"
#include "embertable/version.h"

// TensorFlow's first TPUEmbedding API: tables and features by name, one global batch size, and
// batches, activations and gradients core by core. docs/v1.md says what became of each call.
namespace embertable::v1 {

/// Marks a field that must be given: a field that still has this value is refused.
inline constexpr double kRequired = std::numeric_limits<double>::quiet_NaN();

// Parameters of the optimizers that this API knows, with its defaults. `options` are those of every
// rule; ValueErrors name class, field, rule and value. Source: TF tpu_embedding.py.

struct AdagradParameters {
  double learning_rate = kRequired;
  double initial_accumulator = 0.1;  ///< > 0
  OptimizerOptions options = {};
};

struct ProximalAdagradParameters {
  double learning_rate = kRequired;
  double initial_accumulator = 0.1;         ///< > 0
  double l1_regularization_strength = 0.0;  ///< >= 0
  double l2_regularization_strength = 0.0;  ///< >= 0
  OptimizerOptions options = {};
};

struct AdamParameters {
  double learning_rate = kRequired;
  double beta1 = 0.9;     ///< in [0, 1)
  double beta2 = 0.999;   ///< in [0, 1)
  double epsilon = 1e-8;  ///< > 0
  bool lazy_adam = true;  ///< false needs accumulation
  bool sum_inside_sqrt = true;
  OptimizerOptions options = {};
};

struct FtrlParameters {
  double learning_rate = kRequired;
  double learning_rate_power = -0.5;        ///< <= 0
  double initial_accumulator_value = 0.1;   ///< >= 0
  double l1_regularization_strength = 0.0;  ///< >= 0
  double l2_regularization_strength = 0.0;  ///< >= 0
  bool multiply_linear_by_learning_rate = false;
  double beta = 0.0;
  bool allow_zero_accumulator = false;
  OptimizerOptions options = {};
};

struct ProximalYogiParameters {
  double learning_rate = 0.01;
  double beta1 = 0.9;                       ///< in [0, 1)
  double beta2 = 0.999;                     ///< in [0, 1)
  double epsilon = 1e-3;                    ///< > 0
  double l1_regularization_strength = 0.0;  ///< >= 0
  double l2_regularization_strength = 0.0;  ///< >= 0
  double initial_accumulator_value = 1e-6;
  OptimizerOptions options = {};
};

struct MomentumParameters {
  double learning_rate = kRequired;
  double momentum = kRequired;
  bool use_nesterov = false;
  OptimizerOptions options = {};
};

struct RMSPropParameters {
  double learning_rate = kRequired;
  double rho = kRequired;
  double momentum = kRequired;
  double epsilon = kRequired;
  OptimizerOptions options = {};
};

/// Ignores `options.use_gradient_accumulation`: gradients are accumulated if they have limits.
struct StochasticGradientDescentParameters {
  double learning_rate = kRequired;
  OptimizerOptions options = {};
};

/// Serves tables of dimension 1 that start at max_delta. The rate is fixed at 1; the rule takes the
/// rate for the number of the step, so a table needs a learning_rate_fn that returns its step.
struct FrequencyEstimatorParameters {
  double tau = kRequired;
  double max_delta = kRequired;
  double outlier_threshold = kRequired;
  double weight_exponent = kRequired;
};

using OptimizationParameters =
    std::variant<AdagradParameters, ProximalAdagradParameters, AdamParameters, FtrlParameters,
                 ProximalYogiParameters, MomentumParameters, RMSPropParameters,
                 StochasticGradientDescentParameters, FrequencyEstimatorParameters>;

/// Returns the optimizer that the parameters describe. Throws ValueError.
EMBERTABLE_API Optimizer make_optimizer(const OptimizationParameters& parameters);

/// Returns a table's rate for the caller's global step. Tables that share the object share one
/// input of the engine.
using LearningRateFunction = std::function<double(std::int64_t global_step)>;

/// One table. Source: TF tpu_embedding.py, TableConfig.
struct TableConfig {
  std::int64_t vocabulary_size = 0;  ///< >= 1
  std::int32_t dimension = 0;        ///< 1..embertable::TableConfig::kMaxDim

  /// Gives the rows their first values. Unset: truncated normal, mean 0, stddev 1/sqrt(dimension).
  std::optional<Initializer> initializer = {};

  /// Combines the rows of a sample. Unset: features have one id a sample; several are summed.
  std::optional<Combiner> combiner = Combiner::kMean;

  /// Recorded; it concerns placement alone and has no effect here.
  bool hot_id_replication = false;

  /// Rate of the table: this one if it is given and not 0, else the function's, else the
  /// optimizer's. Only one of the two may be given.
  std::optional<double> learning_rate = {};
  std::shared_ptr<const LearningRateFunction> learning_rate_fn = {};

  /// Optimizer of the table. Unset: the engine's.
  std::optional<OptimizationParameters> optimization_parameters = {};
};

/// One feature. Source: TF tpu_embedding.py, FeatureConfig.
struct FeatureConfig {
  std::string table_id;                        ///< name of a table
  std::int64_t max_sequence_length = 0;        ///< >= 0; 0: the ids of a sample are combined
  std::optional<std::string> weight_key = {};  ///< kept for the caller; it has no effect here
};

/// Check a configuration. They throw ValueError naming field, rule and received value.
EMBERTABLE_API void validate(const TableConfig& table);
EMBERTABLE_API void validate(const FeatureConfig& feature);

/// The ids of one feature on one core. Borrowed for the call. Source: TF tpu_embedding.py,
/// EnqueueData.
struct EnqueueData {
  IntegerSpan embedding_indices;  ///< [n]

  /// Sample and position of each id, [n, 2] row-major, in any order. Unset: one id for each sample.
  std::optional<IntegerSpan> sample_indices = {};

  std::optional<FloatSpan> aggregation_weights = {};  ///< [n]; unset: 1

  /// Makes enqueue data from ids of rank 2.
  static EnqueueData from_sparse(const SparseIds& ids, std::optional<FloatSpan> weights = {}) {
    return {ids.values, ids.indices, weights};
  }
};

/// The ids of one feature on one core, sample by sample. Source: TF tpu_embedding.py,
/// RaggedEnqueueData.
struct RaggedEnqueueData {
  IntegerSpan embedding_indices;                      ///< [n]
  std::optional<IntegerSpan> row_splits = {};         ///< [samples + 1]; unset: one id each
  std::optional<FloatSpan> aggregation_weights = {};  ///< [n]; unset: 1

  /// Makes enqueue data from ragged ids.
  static RaggedEnqueueData from_ragged(const RaggedIds& ids,
                                       std::optional<FloatSpan> weights = {}) {
    return {ids.values, ids.row_splits, weights};
  }
};

/// Purpose of an engine or a batch. Values are those of TensorFlow's TPUEmbeddingConfiguration.
enum class Mode : std::uint8_t { kUnspecified = 0, kInference = 1, kTraining = 2 };

/// Describes the machine: each host owns a shard of every table and drives num_cores / num_hosts
/// cores. With one process hosts are simulated on threads.
struct DeviceConfig {
  std::int32_t num_hosts = 1;
  std::int32_t num_cores = 1;                                    ///< a multiple of num_hosts
  std::shared_ptr<Executor> executor = {};                       ///< see StrategyOptions
  std::chrono::milliseconds timeout = std::chrono::seconds(60);  ///< see StrategyOptions
};

/// Options of a TPUEmbedding.
struct Options {
  std::string partition_strategy = "div";   ///< "div" or "mod": which host owns a row
  std::string profile_data_directory = {};  ///< kept and reported by `configuration`
  DeviceConfig device_config = {};

  /// Options of the engine underneath. `variable_batch` must be off; `revision` is ignored.
  EmbeddingOptions engine = {};
};

/// The engine of the first API: an `Embedding` whose tables and features are in the order of their
/// names, and whose batches have one size. A core is a replica of the engine.
///
/// Any number of threads may enqueue. All other calls are exclusive with each other; engine() says
/// which calls are exclusive with steps. A call that throws leaves the object as it was, except for
/// what engine() says. Source: TF tpu_embedding.py, TPUEmbedding.
class EMBERTABLE_API TPUEmbedding {
 public:
  using Tables = std::map<std::string, TableConfig>;
  using Features = std::map<std::string, FeatureConfig>;
  using FeatureData = std::map<std::string, EnqueueData>;
  using RaggedFeatureData = std::map<std::string, RaggedEnqueueData>;
  using FeatureGradients = std::map<std::string, Gradient>;

  /// `batch_size`: the size for all cores together, a multiple of their number, < 2^31 for each.
  /// `optimization_parameters`: the parameters of tables without their own; none in mode
  /// kInference, whose tables without their own have StochasticGradientDescent(1.0). Throws
  /// ValueError naming the offending field, table or feature: also for a table that no feature
  /// uses, an unknown table, and in mode kTraining a table without parameters.
  TPUEmbedding(Tables table_to_config, Features feature_to_config, std::int64_t batch_size,
               Mode mode, const std::optional<OptimizationParameters>& optimization_parameters = {},
               Options options = {});
  ~TPUEmbedding();
  TPUEmbedding(TPUEmbedding&&) noexcept;
  TPUEmbedding& operator=(TPUEmbedding&&) noexcept;

  /// Creates tables and slots; the first enqueue does it too. Throws what Embedding::build throws.
  void create_variables();

  /// Checks and copies one map for each core, host by host; each has every feature. Throws
  /// ValueError naming the map's index and the features that are missing or unknown, DataError
  /// naming feature, core, sample and position; StateError for a training batch in mode kInference,
  /// and where the queue is full. `timeout`: see EnqueueOptions.
  void enqueue(std::span<const FeatureData> of_cores, Mode mode_override = Mode::kUnspecified,
               std::optional<std::chrono::milliseconds> timeout = {});
  void enqueue(std::span<const RaggedFeatureData> of_cores, Mode mode_override = Mode::kUnspecified,
               std::optional<std::chrono::milliseconds> timeout = {});

  /// Returns the activations of the oldest batch: by core, and by feature in the order of their
  /// names, [batch_size_per_core, dimension] or [batch_size_per_core, max_sequence_length,
  /// dimension]. `interleave(layout(), activations, core)` gives those of each table. Throws what
  /// Embedding::dequeue throws. `timeout`: see DequeueOptions.
  Activations get_activations(std::optional<std::chrono::milliseconds> timeout = {});

  /// Applies one map for each core with the gradient of every feature, or none. `step`: the global
  /// step, given to each learning_rate_fn once. Throws StateError in mode kInference or out of
  /// order; ValueError for a missing step, naming the map's index and features that are missing or
  /// unknown, and what Embedding::apply_gradients throws.
  void send_gradients(std::span<const FeatureGradients> of_cores,
                      std::optional<std::int64_t> step = {});

  /// Applies gradients from the tensors of tables: of_tables[core * tables + table], laid out by
  /// layout().
  void send_gradients(std::span<const std::span<const float>> of_tables,
                      std::optional<std::int64_t> step = {});

  /// Returns the layout of a core's features in the tensors of their tables; tables and features in
  /// the order of their names. Always valid.
  const InterleavedLayout& layout() const noexcept;

  /// Returns the ids of a table that a host owns, rising with their place there. Throws KeyError
  /// for an unknown table, ValueError unless 0 <= host < num_hosts().
  std::vector<std::int64_t> ids_of_host(std::string_view table, std::int32_t host) const;

  /// Returns what TensorFlow's engine of this API would tell an accelerator, to the byte: see
  /// tensorflow/tpu_embedding_configuration.h. Functions are tagged in the order of the tables'
  /// names.
  wire::TPUEmbeddingConfiguration configuration() const;

  const Tables& table_to_config() const noexcept;
  const Features& feature_to_config() const noexcept;
  Mode mode() const noexcept;
  std::int64_t batch_size() const noexcept;
  std::int64_t batch_size_per_core() const noexcept;
  std::int32_t num_hosts() const noexcept;
  std::int32_t num_cores() const noexcept;

  /// Returns the engine underneath, to read and write rows and slots, save, restore and measure.
  /// Its enqueue, dequeue and apply_gradients belong to this object.
  Embedding& engine() noexcept;
  const Embedding& engine() const noexcept;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace embertable::v1
