#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "embertable/export.h"
#include "embertable/initializer.h"
#include "embertable/optimizer.h"
#include "embertable/shape.h"

namespace embertable {

struct CustomCombiner;

/// How the rows of one sample become one activation: the weighted sum, divided by nothing, by the
/// sum of the weights, or by the root of the sum of their squares.
enum class Combiner : std::uint8_t { kSum = 0, kMean = 1, kSqrtN = 2 };

/// "sum", "mean", "sqrtn".
EMBERTABLE_API std::string_view to_string(Combiner combiner) noexcept;

/// Throws ValueError naming the accepted names.
EMBERTABLE_API Combiner parse_combiner(std::string_view name);

/// Simulated quantization: every number that is looked up counts as the nearest (of two as near the
/// upper) of `num_buckets` numbers that stand evenly from lower to upper, before weights and
/// combiner. Rows, slots and gradients stay as they are. Source: TF tpu_embedding_v2_utils.py,
/// QuantizationConfig.
struct QuantizationConfig {
  std::int32_t num_buckets = 0;  ///< >= 2
  float lower = 0;               ///< finite, < upper
  float upper = 0;

  friend bool operator==(const QuantizationConfig&, const QuantizationConfig&) = default;
};

/// One embedding table. Shared by the features that name the same object; two objects with equal
/// fields are two tables. Source: TF tpu_embedding_v2_utils.py, TableConfig.
struct TableConfig {
  /// Rows, >= 1. Ids of this table are 0 <= id < vocabulary_size.
  std::int64_t vocabulary_size = 0;

  /// Floats per row, 1..kMaxDim, without padding and without optimizer slots.
  std::int32_t dim = 0;

  /// First values; unset: truncated normal, mean 0, stddev 1/sqrt(dim).
  std::optional<Initializer> initializer;

  /// Unset: the engine's.
  std::optional<Optimizer> optimizer;

  Combiner combiner = Combiner::kMean;

  /// Names the table in checkpoints and messages, unique within an engine. Unset: table_<position>.
  std::optional<std::string> name;

  /// Unset: numbers are looked up as they are.
  std::optional<QuantizationConfig> quantization_config;

  /// Not null: instead of `combiner`. Engines refuse it, see custom_combiner.h.
  std::shared_ptr<const CustomCombiner> custom_combiner;

  static constexpr std::int32_t kMaxDim = 4096;
};

using TablePtr = std::shared_ptr<const TableConfig>;

/// A table to be shared by features. Throws as `validate`.
EMBERTABLE_API TablePtr make_table(TableConfig table);

/// One input of the model. Source: TF tpu_embedding_v2_utils.py, FeatureConfig.
struct FeatureConfig {
  /// Not null.
  TablePtr table;

  /// 0: the ids of a sample are combined. L > 0: each of the first L ids gives an activation of its
  /// own, shorter samples are padded with zeros; heeded only where `output_shape` has unknown rank
  /// and the input is of rank 2.
  std::int64_t max_sequence_length = 0;

  /// Serving lookup only: prune ids below 0 and, but for sums, weights that are not positive.
  bool validate_weights_and_indices = true;

  /// Shape of the activations of one replica without the table's dim, rank < Shape::kMaxRank.
  /// Unknown rank: from `build` or the first batch.
  Shape output_shape;

  std::optional<std::string> name;
};

/// Throw ValueError naming field, rule and received value, in the order of the fields; a feature's
/// table first. Source: TF tpu_embedding_v2_utils.py, TableConfig.__init__, FeatureConfig.__init__.
EMBERTABLE_API void validate(const QuantizationConfig& quantization);
EMBERTABLE_API void validate(const TableConfig& table);
EMBERTABLE_API void validate(const FeatureConfig& feature);

/// As the original prints them: vocabulary_size, dim, initializer (None for the default one),
/// optimizer, combiner, name, quantization_config; and the other types' fields in their order.
EMBERTABLE_API std::string to_string(const QuantizationConfig& quantization);
EMBERTABLE_API std::string to_string(const TableConfig& table);
EMBERTABLE_API std::string to_string(const FeatureConfig& feature);

}  // namespace embertable
