#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "embertable/initializer.h"
#include "embertable/optimizer.h"
#include "embertable/row_type.h"
#include "embertable/shape.h"
#include "embertable/version.h"

namespace embertable {

struct CustomCombiner;

/// Combines the rows of one sample into one activation: the weighted sum, divided by nothing, by
/// the sum of the weights, or by the root of the sum of their squares.
enum class Combiner : std::uint8_t { kSum = 0, kMean = 1, kSqrtN = 2 };

/// Returns "sum", "mean" or "sqrtn".
EMBERTABLE_API std::string_view to_string(Combiner combiner) noexcept;

/// Reverses to_string. Throws ValueError naming the accepted names.
EMBERTABLE_API Combiner parse_combiner(std::string_view name);

/// Simulated quantization: every number that is looked up is replaced by the nearest (the upper one
/// of two equally near) of `num_buckets` numbers spaced evenly from lower to upper, before weights
/// and combiner are applied. Rows, slots and gradients are not quantized. Source: TF
/// tpu_embedding_v2_utils.py, QuantizationConfig.
struct QuantizationConfig {
  std::int32_t num_buckets = 0;  ///< >= 2
  float lower = 0;               ///< finite, < upper
  float upper = 0;

  friend bool operator==(const QuantizationConfig&, const QuantizationConfig&) = default;
};

/// One embedding table. Features that name the same object share it; two objects with equal fields
/// are two tables. Source: TF tpu_embedding_v2_utils.py, TableConfig.
struct TableConfig {
  /// Number of rows, >= 1. Valid ids are 0 <= id < vocabulary_size.
  std::int64_t vocabulary_size = 0;

  /// Floats per row, 1..kMaxDim, without padding and without optimizer slots.
  std::int32_t dim = 0;

  /// Gives the rows their first values. Unset: truncated normal, mean 0, stddev 1/sqrt(dim).
  std::optional<Initializer> initializer;

  /// Updates the rows. Unset: the engine's optimizer.
  std::optional<Optimizer> optimizer;

  Combiner combiner = Combiner::kMean;

  /// Names the table in checkpoints and messages; unique within an engine. Unset: table_<position>.
  std::optional<std::string> name;

  /// Quantizes what is looked up. Unset: rows are looked up unchanged.
  std::optional<QuantizationConfig> quantization_config;

  /// Replaces `combiner` when not null. Engines refuse a table that has one, see
  /// tensorflow/custom_combiner.h.
  std::shared_ptr<const CustomCombiner> custom_combiner;

  /// Gives every host all rows, so that its lookups of them send nothing, and gradients go to every
  /// host: for small tables that most samples look up. Takes the memory of the table once for each
  /// host. Results, checkpoints and configurations for TensorFlow are the same without it; with one
  /// host it means nothing. Functions that give first values, and rules of the caller's own, run
  /// for every copy, and must give the same numbers for each.
  bool replicated = false;

  /// How the rows are stored: float32 or bfloat16.
  RowType row_type = RowType::kFloat32;

  static constexpr std::int32_t kMaxDim = 4096;
};

/// A table as features name it; tables are the same if their pointers are.
using TablePtr = std::shared_ptr<const TableConfig>;

/// Makes a table that features can share. Throws the errors of `validate`.
EMBERTABLE_API TablePtr make_table(TableConfig table);

/// One input of the model. Source: TF tpu_embedding_v2_utils.py, FeatureConfig.
struct FeatureConfig {
  /// The table that is looked up. Not null.
  TablePtr table;

  /// Length of a sequence. 0: the ids of a sample are combined. L > 0: each of the first L ids
  /// gives an activation of its own, and shorter samples are padded with zeros. It takes effect
  /// only where `output_shape` has unknown rank and the input has rank 2.
  std::int64_t max_sequence_length = 0;

  /// Makes serving lookups drop ids below 0 and, except for sums, weights that are not positive.
  /// Engines ignore it.
  bool validate_weights_and_indices = true;

  /// Shape of the activations of one replica without the table's dim, rank < Shape::kMaxRank.
  /// Unknown rank: taken from `build` or the first batch.
  Shape output_shape;

  /// Names the feature in errors of its configuration, in checkpoints and for TensorFlow. Inputs
  /// are matched to features by structure, not by name.
  std::optional<std::string> name;
};

/// Check a configuration. They throw ValueError naming field, rule and received value, in the order
/// of the fields; a feature's table is checked first. Source: TF tpu_embedding_v2_utils.py,
/// TableConfig.__init__, FeatureConfig.__init__.
EMBERTABLE_API void validate(const QuantizationConfig& quantization);
EMBERTABLE_API void validate(const TableConfig& table);
EMBERTABLE_API void validate(const FeatureConfig& feature);

/// Return the text that TensorFlow prints: vocabulary_size, dim, initializer (None for the
/// default one), optimizer, combiner, name, quantization_config, and row_type unless it is float32;
/// and the other types' fields in their order.
EMBERTABLE_API std::string to_string(const QuantizationConfig& quantization);
EMBERTABLE_API std::string to_string(const TableConfig& table);
EMBERTABLE_API std::string to_string(const FeatureConfig& feature);

}  // namespace embertable
