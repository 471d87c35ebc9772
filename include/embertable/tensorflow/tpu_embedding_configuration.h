#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "embertable/shape.h"
#include "embertable/tensorflow/optimization_parameters.h"
#include "embertable/version.h"

namespace embertable::wire {

// The configuration that an engine tells an accelerator, TensorFlow's
// tpu_embedding_configuration.proto; its bytes and its text. Values without locks: any number of
// threads may read one.

/// One table.
struct TableDescriptor {
  std::string name;
  std::int64_t vocabulary_size = 0;
  std::int32_t dimension = 0;
  std::int32_t num_features = 0;  ///< output rows per sample; 0 where features are described
  std::optional<OptimizationParameters> optimization_parameters;
  UnknownFields unknown_fields;
  friend bool operator==(const TableDescriptor&, const TableDescriptor&) = default;
};

/// One feature.
struct FeatureDescriptor {
  std::string name;
  std::int32_t table_id = 0;              ///< position of its table
  std::vector<std::int32_t> input_shape;  ///< shape of one replica, without the table's dimension
  UnknownFields unknown_fields;
  friend bool operator==(const FeatureDescriptor&, const FeatureDescriptor&) = default;
};

/// Says how a program is divided among the cores of a replica.
struct SpmdSharding {
  bool enabled = false;
  std::int32_t num_cores_per_replica = 0;
  bool use_manual_partitioning = false;
  bool use_shardy_partitioner = false;
  UnknownFields unknown_fields;
  friend bool operator==(const SpmdSharding&, const SpmdSharding&) = default;
};

/// Tables, features and the machine that holds them. Source: TF tpu_embedding_configuration.proto.
struct TPUEmbeddingConfiguration {
  enum class Mode : std::int32_t {
    kUnspecified = 0,
    kInference = 1,
    kTraining = 2,
    kBackwardPassOnly = 3
  };
  enum class ShardingStrategy : std::int32_t { kDivDefault = 0, kMod = 1 };

  std::vector<TableDescriptor> table_descriptor;  ///< by table id
  Mode mode = Mode::kUnspecified;
  std::int32_t batch_size_per_tensor_core = 0;
  std::int32_t num_hosts = 0;
  std::int32_t num_tensor_cores = 0;
  ShardingStrategy sharding_strategy = ShardingStrategy::kDivDefault;
  bool pipeline_execution_with_tensor_core = false;
  std::string profile_data_directory;
  std::vector<FeatureDescriptor> feature_descriptor;  ///< in flatten order
  std::optional<SpmdSharding> spmd_sharding;
  UnknownFields unknown_fields;
  friend bool operator==(const TPUEmbeddingConfiguration&,
                         const TPUEmbeddingConfiguration&) = default;
};

/// Marks a status as an error that does not go away.
struct TPUEmbeddingError {
  UnknownFields unknown_fields;
  friend bool operator==(const TPUEmbeddingError&, const TPUEmbeddingError&) = default;
};

/// Returns the bytes of a message, equal to protobuf's: known fields by their numbers, then unknown
/// ones in their received bytes. Throws ValueError naming the field for a text that is not UTF-8
/// and for more than `parse` takes.
EMBERTABLE_API std::string serialize(const TPUEmbeddingConfiguration& message);
EMBERTABLE_API std::string serialize(const OptimizationParameters& message);
EMBERTABLE_API std::string serialize(const StateVariableSpecification& message);
EMBERTABLE_API std::string serialize(const TPUEmbeddingError& message);

/// Reads the bytes of a message that may come from anywhere, by protobuf's rules: fields in any
/// order, the last of a repeated scalar winning, repeated submessages merged, and unknown fields
/// kept (see UnknownFields). Throws ValueError naming message, field and byte offset; also for more
/// than kMaxBytes, kMaxTables or kMaxFeatures.
EMBERTABLE_API TPUEmbeddingConfiguration parse_configuration(std::string_view bytes);
EMBERTABLE_API OptimizationParameters parse_optimization_parameters(std::string_view bytes);
EMBERTABLE_API StateVariableSpecification parse_state_variable(std::string_view bytes);
EMBERTABLE_API TPUEmbeddingError parse_error(std::string_view bytes);

/// Limits of a message that is parsed or serialized: its bytes, tables and features.
inline constexpr std::size_t kMaxBytes = std::size_t{64} << 20;
inline constexpr std::size_t kMaxTables = std::size_t{1} << 16;
inline constexpr std::size_t kMaxFeatures = std::size_t{1} << 20;

/// Returns protobuf's text form: one field per line, submessages indented by two spaces. Unknown
/// fields are counted in a comment.
EMBERTABLE_API std::string to_text(const TPUEmbeddingConfiguration& message);
EMBERTABLE_API std::string to_text(const OptimizationParameters& message);
EMBERTABLE_API std::string to_text(const StateVariableSpecification& message);

/// Passes each line of the text form to `log`, without its end, so that a log that cuts long
/// records loses nothing. Throws ValueError for an empty function.
EMBERTABLE_API void log_lines(const TPUEmbeddingConfiguration& message,
                              const std::function<void(std::string_view)>& log);

/// Fills in the form that is missing: from batch_size_per_tensor_core and num_features a descriptor
/// for each table, or from the descriptors batch_size_per_tensor_core (the greatest common divisor
/// of all features' elements) and num_features. Throws ValueError naming field, table and value
/// unless just one form is there and whole: without descriptors batch size and every num_features
/// above 0; with them both 0, table ids within the tables, input shapes not empty with every dim
/// above 0, no table without feature. Source: TF tpu_embedding_configuration.proto.
EMBERTABLE_API TPUEmbeddingConfiguration complete(TPUEmbeddingConfiguration configuration);

/// Returns the shapes of a step's results: for each feature its input shape and the table's
/// dimension, axis 0 times the cores of a replica if SPMD shards it and not the caller; without
/// descriptors for each table [num_tensor_cores * batch_size_per_tensor_core * num_features,
/// dimension]. Throws ValueError like `complete`, or beyond a Shape. Source: TF
/// tpu_embedding_output_layout_utils.cc.
EMBERTABLE_API std::vector<Shape> activation_shapes(const TPUEmbeddingConfiguration& configuration);

/// Returns the number of inputs that an application of gradients brings: the tags of all tables'
/// rates and step counters, which must be 0, 1, ... without a gap. A frequency-aware Adagrad
/// without step counter counts as tag 0. Throws ValueError naming the first tag that is missing,
/// the one found instead and their number. Source: TF
/// tpu_embedding_optimization_parameters_utils.cc.
EMBERTABLE_API std::int32_t num_dynamic_inputs(const TPUEmbeddingConfiguration& configuration);

}  // namespace embertable::wire
