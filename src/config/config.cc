#include "embertable/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

#include "base/enumerators.h"
#include "base/float_environment.h"
#include "config/enumerations.h"
#include "embertable/errors.h"
#include "embertable/tensorflow/custom_combiner.h"

namespace embertable {

template <>
struct Enumerators<RowType> : EnumeratorRange<RowType::kFloat32, RowType::kInt8> {};

namespace {

constexpr std::array kRowTypes = {RowType::kFloat32, RowType::kBfloat16, RowType::kInt8};
constexpr std::array kTrainableRowTypes = {RowType::kFloat32, RowType::kBfloat16};
constexpr std::array kCombiners = {Combiner::kSum, Combiner::kMean, Combiner::kSqrtN};

/// Returns "table 'ads'" or "feature", for messages.
std::string subject(const char* kind, const std::optional<std::string>& name) {
  return name ? std::string(kind) + " '" + *name + "'" : kind;
}

[[noreturn]] void refuse(const std::string& subject, const std::string& rule,
                         const std::string& received) {
  throw ValueError(subject + ": " + rule + ", got " + received);
}

std::string quoted(const std::optional<std::string>& text) {
  return text ? "'" + *text + "'" : "None";
}

std::string initializer_text(const TableConfig& table) {
  if (!table.initializer || table.initializer->is_default_for(table.dim)) return "None";
  return table.initializer->to_string();
}

std::string combiner_text(const TableConfig& table) {
  if (table.custom_combiner) return table.custom_combiner->name();
  return std::string(to_string(table.combiner));
}

/// Returns "row_type must be 'float32' or 'bfloat16'".
std::string row_type_rule(std::span<const RowType> types) {
  std::string rule = "row_type must be ";
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (i > 0) rule += i + 1 == types.size() ? " or " : ", ";
    rule += "'" + std::string(to_string(types[i])) + "'";
  }
  return rule;
}

RowType row_type_among(std::span<const RowType> types, std::string_view name) {
  for (const RowType type : types) {
    if (name == to_string(type)) return type;
  }
  throw ValueError(row_type_rule(types) + ", got '" + std::string(name) + "'");
}

/// Returns "[16, 4]", "[None]", or "None" for unknown rank.
std::string shape_text(const Shape& shape) {
  if (!shape.has_rank()) return "None";
  std::string text;
  for (const std::int64_t dim : shape.dims()) {
    if (!text.empty()) text += ", ";
    text += dim == Shape::kUnknown ? "None" : std::to_string(dim);
  }
  return "[" + text + "]";
}

}  // namespace

std::string_view to_string(Combiner combiner) noexcept {
  switch (combiner) {
    case Combiner::kSum:
      return "sum";
    case Combiner::kMean:
      return "mean";
    case Combiner::kSqrtN:
      return "sqrtn";
  }
  return "?";
}

Combiner parse_combiner(std::string_view name) {
  for (const Combiner combiner : kCombiners) {
    if (name == to_string(combiner)) return combiner;
  }
  throw ValueError("combiner must be 'mean', 'sum' or 'sqrtn', got '" + std::string(name) + "'");
}

std::string_view to_string(RowType type) noexcept {
  switch (type) {
    case RowType::kFloat32:
      return "float32";
    case RowType::kBfloat16:
      return "bfloat16";
    case RowType::kInt8:
      return "int8";
  }
  return "?";
}

RowType parse_row_type(std::string_view name) { return row_type_among(kRowTypes, name); }

bool is_trainable(RowType type) noexcept {
  return std::ranges::find(kTrainableRowTypes, type) != kTrainableRowTypes.end();
}

RowType parse_trainable_row_type(std::string_view name) {
  return row_type_among(kTrainableRowTypes, name);
}

TablePtr make_table(TableConfig table) {
  validate(table);
  return std::make_shared<const TableConfig>(std::move(table));
}

void validate(const QuantizationConfig& quantization) {
  if (quantization.num_buckets < 2) {
    refuse("quantization_config", "num_buckets must be >= 2",
           std::to_string(quantization.num_buckets));
  }
  const FloatEnvironment ours;
  const float width = quantization.upper - quantization.lower;
  if (!(width > 0) || !std::isfinite(width)) {
    refuse("quantization_config", "lower must be less than upper, by a finite number",
           to_string(quantization));
  }
  if (!(width / static_cast<float>(quantization.num_buckets - 1) > 0)) {
    refuse("quantization_config", "(upper - lower) / (num_buckets - 1) must be a number above 0",
           to_string(quantization));
  }
}

void validate(const TableConfig& table) {
  const std::string where = subject("table", table.name);
  if (table.vocabulary_size < 1) {
    refuse(where, "vocabulary_size must be >= 1", std::to_string(table.vocabulary_size));
  }
  if (table.dim < 1 || table.dim > TableConfig::kMaxDim) {
    refuse(where, "dim must be 1.." + std::to_string(TableConfig::kMaxDim),
           std::to_string(table.dim));
  }
  if (table.initializer) {
    table.initializer->check(table.name.value_or(""), table.vocabulary_size, table.dim);
  }
  if (!is_enumerator(table.combiner)) {
    refuse(where, "combiner must be mean, sum or sqrtn",
           std::to_string(static_cast<int>(table.combiner)));
  }
  if (table.custom_combiner) validate(*table.custom_combiner);
  if (table.quantization_config) validate(*table.quantization_config);
  check_enumerator(table.row_type, where + ": row_type");
  if (!is_trainable(table.row_type)) {
    refuse(where, row_type_rule(kTrainableRowTypes),
           "'" + std::string(to_string(table.row_type)) + "'");
  }
}

void validate(const FeatureConfig& feature) {
  const std::string where = subject("feature", feature.name);
  if (!feature.table) refuse(where, "table must be a TableConfig", "none");
  validate(*feature.table);
  if (feature.max_sequence_length < 0) {
    refuse(where, "max_sequence_length must be >= 0", std::to_string(feature.max_sequence_length));
  }
  if (feature.output_shape.rank() >= Shape::kMaxRank) {
    refuse(where,
           "output_shape must have rank <= " + std::to_string(Shape::kMaxRank - 1) +
               ", the dim being one more axis",
           feature.output_shape.to_string());
  }
}

std::string to_string(const QuantizationConfig& quantization) {
  return fmt::format("QuantizationConfig(num_buckets={}, lower={}, upper={})",
                     quantization.num_buckets, quantization.lower, quantization.upper);
}

std::string to_string(const TableConfig& table) {
  return "TableConfig(vocabulary_size=" + std::to_string(table.vocabulary_size) +
         ", dim=" + std::to_string(table.dim) + ", initializer=" + initializer_text(table) +
         ", optimizer=" + (table.optimizer ? table.optimizer->to_string() : "None") +
         ", combiner='" + combiner_text(table) + "', name=" + quoted(table.name) +
         ", quantization_config=" +
         (table.quantization_config ? to_string(*table.quantization_config) : "None") +
         (table.row_type == RowType::kFloat32
              ? ""
              : ", row_type='" + std::string(to_string(table.row_type)) + "'") +
         (table.replicated ? ", replicated=True" : "") + ")";
}

std::string to_string(const FeatureConfig& feature) {
  return "FeatureConfig(table=" + (feature.table ? to_string(*feature.table) : "None") +
         ", max_sequence_length=" + std::to_string(feature.max_sequence_length) +
         ", validate_weights_and_indices=" +
         (feature.validate_weights_and_indices ? "True" : "False") +
         ", output_shape=" + shape_text(feature.output_shape) + ", name=" + quoted(feature.name) +
         ")";
}

}  // namespace embertable
