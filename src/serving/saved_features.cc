#include <span>
#include <utility>

#include "embertable/errors.h"
#include "serving/served.h"

namespace embertable::serving {
namespace {

TablePtr table_of(const checkpoint::SavedTable& saved) {
  TableConfig config;
  config.vocabulary_size = saved.vocabulary_size;
  config.dim = saved.dim;
  config.combiner = parse_combiner(saved.combiner);
  config.name = saved.name;
  config.quantization_config = saved.quantization;
  if (saved.row_type == RowType::kBfloat16) config.row_type = saved.row_type;
  return make_table(std::move(config));
}

FeatureConfig feature_of(const checkpoint::SavedFeature& saved,
                         const std::vector<TablePtr>& tables) {
  FeatureConfig config;
  config.table = tables[saved.table];
  config.max_sequence_length = saved.max_sequence_length;
  config.validate_weights_and_indices = saved.validate_weights_and_indices;
  if (saved.output_shape)
    config.output_shape = Shape(std::span<const std::int64_t>(*saved.output_shape));
  config.name = saved.name;
  return config;
}

}  // namespace

SavedFeatures features_of(const checkpoint::Manifest& manifest) {
  std::vector<TablePtr> tables;
  for (const checkpoint::SavedTable& saved : manifest.tables) tables.push_back(table_of(saved));
  std::vector<std::pair<std::string, Nested<FeatureConfig>>> features;
  for (const checkpoint::SavedFeature& saved : manifest.features)
    features.emplace_back(saved.path, feature_of(saved, tables));
  return {Nested<FeatureConfig>::map(std::move(features)), std::move(tables)};
}

}  // namespace embertable::serving
