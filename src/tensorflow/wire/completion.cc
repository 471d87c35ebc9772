#include <fmt/format.h>

#include <numeric>
#include <set>

#include "base/int32_of.h"
#include "embertable/errors.h"
#include "embertable/tensorflow/tpu_embedding_configuration.h"

namespace embertable::wire {
namespace {

using Tables = std::vector<TableDescriptor>;

std::string table_text(const Tables& tables, std::size_t table) {
  return fmt::format("table {} ('{}')", table, tables[table].name);
}

void describe_tables(TPUEmbeddingConfiguration& configuration) {
  const std::int64_t batch = configuration.batch_size_per_tensor_core;
  if (batch <= 0) {
    throw ValueError(fmt::format(
        "batch_size_per_tensor_core must be > 0 where there is no feature_descriptor, got {}",
        batch));
  }
  const Tables& tables = configuration.table_descriptor;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    const std::int64_t features = tables[t].num_features;
    const std::string subject = table_text(tables, t);
    if (features <= 0) {
      throw ValueError(
          fmt::format("{}: num_features must be > 0 where there is no feature_descriptor, got {}",
                      subject, features));
    }
    configuration.feature_descriptor.push_back(
        {.table_id = static_cast<std::int32_t>(t),
         .input_shape = {
             int32_of(batch * features, subject, "batch_size_per_tensor_core * num_features")}});
  }
}

void check_descriptor(const Tables& tables, const FeatureDescriptor& feature,
                      const std::string& subject) {
  if (feature.table_id < 0 || static_cast<std::size_t>(feature.table_id) >= tables.size()) {
    throw ValueError(fmt::format("{}: table_id must be in [0, {}), got {}", subject, tables.size(),
                                 feature.table_id));
  }
  if (feature.input_shape.empty())
    throw ValueError(fmt::format("{}: input_shape must have a dim, got none", subject));
  for (const std::int32_t dim : feature.input_shape) {
    if (dim <= 0)
      throw ValueError(
          fmt::format("{}: every dim of input_shape must be > 0, got {}", subject, dim));
  }
}

std::string feature_text(std::size_t feature, const FeatureDescriptor& descriptor) {
  return fmt::format("feature_descriptor {} ('{}')", feature, descriptor.name);
}

void check_descriptors(const TPUEmbeddingConfiguration& configuration) {
  const Tables& tables = configuration.table_descriptor;
  std::vector<bool> used(tables.size());
  for (std::size_t f = 0; f < configuration.feature_descriptor.size(); ++f) {
    const FeatureDescriptor& feature = configuration.feature_descriptor[f];
    check_descriptor(tables, feature, feature_text(f, feature));
    used[feature.table_id] = true;
  }
  for (std::size_t t = 0; t < tables.size(); ++t) {
    if (!used[t])
      throw ValueError(
          fmt::format("{}: a feature must look it up, got none", table_text(tables, t)));
  }
}

void check_nothing_counted(const TPUEmbeddingConfiguration& configuration) {
  if (configuration.batch_size_per_tensor_core != 0) {
    throw ValueError(fmt::format(
        "batch_size_per_tensor_core must be 0 where there are feature_descriptors, got {}",
        configuration.batch_size_per_tensor_core));
  }
  const Tables& tables = configuration.table_descriptor;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    if (tables[t].num_features != 0) {
      throw ValueError(
          fmt::format("{}: num_features must be 0 where there are feature_descriptors, got {}",
                      table_text(tables, t), tables[t].num_features));
    }
  }
}

/// Returns the feature's output rows. Throws ValueError beyond 32 bits.
std::int32_t elements(const FeatureDescriptor& feature, const std::string& subject) {
  std::int64_t product = 1;
  for (const std::int32_t dim : feature.input_shape)
    product = int32_of(product * dim, subject, "the product of input_shape");
  return static_cast<std::int32_t>(product);
}

void count_features(TPUEmbeddingConfiguration& configuration) {
  std::vector<std::int32_t> rows;
  for (std::size_t f = 0; f < configuration.feature_descriptor.size(); ++f) {
    const FeatureDescriptor& feature = configuration.feature_descriptor[f];
    rows.push_back(elements(feature, feature_text(f, feature)));
  }
  const std::int32_t batch = std::accumulate(rows.begin(), rows.end(), std::int32_t{0},
                                             std::gcd<std::int32_t, std::int32_t>);
  configuration.batch_size_per_tensor_core = batch;
  Tables& tables = configuration.table_descriptor;
  for (std::size_t f = 0; f < rows.size(); ++f) {
    const auto t = static_cast<std::size_t>(configuration.feature_descriptor[f].table_id);
    std::int32_t& features = tables[t].num_features;
    features =
        int32_of(std::int64_t{features} + rows[f] / batch, table_text(tables, t), "num_features");
  }
}

/// Throws ValueError naming the subject for a dim below 0, or more axes than a Shape has.
Shape shape_of(const std::vector<std::int64_t>& dims, const std::string& subject) {
  if (dims.size() > static_cast<std::size_t>(Shape::kMaxRank)) {
    throw ValueError(fmt::format("{}: activations must have rank <= {}, got {}", subject,
                                 Shape::kMaxRank, dims.size()));
  }
  for (const std::int64_t dim : dims) {
    if (dim < 0)
      throw ValueError(fmt::format("{}: activations must have dims >= 0, got {}", subject, dim));
  }
  return Shape(dims);
}

Shape shape_of_feature(const TPUEmbeddingConfiguration& configuration, std::size_t f) {
  const FeatureDescriptor& feature = configuration.feature_descriptor[f];
  const std::string subject = feature_text(f, feature);
  check_descriptor(configuration.table_descriptor, feature, subject);
  std::vector<std::int64_t> dims(feature.input_shape.begin(), feature.input_shape.end());
  const auto& spmd = configuration.spmd_sharding;
  if (spmd && spmd->enabled && !spmd->use_manual_partitioning)
    dims.front() *= spmd->num_cores_per_replica;
  const auto table = static_cast<std::size_t>(feature.table_id);
  dims.push_back(configuration.table_descriptor[table].dimension);
  return shape_of(dims, subject);
}

Shape shape_of_table(const TPUEmbeddingConfiguration& configuration, std::size_t t) {
  const TableDescriptor& table = configuration.table_descriptor[t];
  std::int64_t rows =
      std::int64_t{configuration.num_tensor_cores} * configuration.batch_size_per_tensor_core;
  const std::string subject = table_text(configuration.table_descriptor, t);
  if (__builtin_mul_overflow(rows, table.num_features, &rows)) {
    throw ValueError(fmt::format("{}: rows of activations must fit 64 bits, got num_features {}",
                                 subject, table.num_features));
  }
  return shape_of({rows, table.dimension}, subject);
}

void add_tags(std::set<std::int32_t>& tags, const OptimizationParameters& parameters) {
  if (parameters.learning_rate) {
    const auto& rate = parameters.learning_rate->learning_rate;
    if (const auto* input = std::get_if<OptimizerDynamicInput>(&rate)) tags.insert(input->tag);
  }
  if (const auto* rule = std::get_if<FrequencyAwareAdagradParameters>(&parameters.parameters))
    tags.insert(rule->step_counter ? rule->step_counter->tag : 0);
}

}  // namespace

TPUEmbeddingConfiguration complete(TPUEmbeddingConfiguration configuration) {
  if (configuration.feature_descriptor.empty()) {
    describe_tables(configuration);
  } else {
    check_nothing_counted(configuration);
    check_descriptors(configuration);
    count_features(configuration);
  }
  return configuration;
}

std::vector<Shape> activation_shapes(const TPUEmbeddingConfiguration& configuration) {
  std::vector<Shape> shapes;
  for (std::size_t f = 0; f < configuration.feature_descriptor.size(); ++f)
    shapes.push_back(shape_of_feature(configuration, f));
  if (!shapes.empty()) return shapes;
  for (std::size_t t = 0; t < configuration.table_descriptor.size(); ++t)
    shapes.push_back(shape_of_table(configuration, t));
  return shapes;
}

std::int32_t num_dynamic_inputs(const TPUEmbeddingConfiguration& configuration) {
  std::set<std::int32_t> tags;
  for (const TableDescriptor& table : configuration.table_descriptor) {
    if (table.optimization_parameters) add_tags(tags, *table.optimization_parameters);
  }
  std::int32_t expected = 0;
  for (const std::int32_t tag : tags) {
    if (tag != expected) {
      throw ValueError(fmt::format(
          "the {} tags of dynamic inputs must be 0 to {}: {} must be among them, got {}",
          tags.size(), tags.size() - 1, expected, tag));
    }
    ++expected;
  }
  return expected;
}

}  // namespace embertable::wire
