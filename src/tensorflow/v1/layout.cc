#include <algorithm>
#include <utility>

#include "embertable/errors.h"
#include "embertable/tensorflow/interleave.h"

namespace embertable {
namespace {

constexpr std::int64_t kMostNumbers = std::int64_t{1} << 62;

template <class Named>
std::int64_t find(const std::vector<Named>& all, const std::string& name) {
  const auto at = std::ranges::find(all, name, &Named::name);
  return at == all.end() ? -1 : at - all.begin();
}

[[noreturn]] void refuse(const std::string& kind, const std::string& name,
                         const std::string& rule) {
  throw ValueError(kind + " '" + name + "': " + rule);
}

bool too_many(std::int64_t batch_size, const InterleavedLayout::PlacedTable& table) {
  std::int64_t numbers = 0;
  return __builtin_mul_overflow(batch_size, table.num_features, &numbers) ||
         __builtin_mul_overflow(numbers, table.dim, &numbers) || numbers > kMostNumbers;
}

std::int64_t leading_dim(const Nested<Shape>& shapes) {
  return shapes.size() > 0 && shapes[0].rank() > 0 ? shapes[0][0] : 1;
}

/// Returns the sequence length of an output shape: 0 for [batch_size], L for [batch_size, L].
std::int64_t sequence_length(const std::string& path, const Shape& shape, std::int64_t batch_size) {
  const bool fits =
      (shape.rank() == 1 || (shape.rank() == 2 && shape[1] > 0)) && shape[0] == batch_size;
  if (!fits) {
    refuse("feature", path,
           "its output shape must be (" + std::to_string(batch_size) + ") or (" +
               std::to_string(batch_size) + ", L), got " + shape.to_string());
  }
  return shape.rank() == 2 ? shape[1] : 0;
}

}  // namespace

InterleavedLayout::InterleavedLayout(const std::vector<Table>& tables,
                                     const std::vector<Feature>& features, std::int64_t batch_size)
    : batch_size_(batch_size) {
  if (batch_size < 1)
    throw ValueError("layout: batch_size must be >= 1, got " + std::to_string(batch_size));
  for (const auto& [name, dim] : tables) {
    if (find(tables_, name) >= 0) refuse("table", name, "names must be unique, got it twice");
    if (dim < 1) refuse("table", name, "dim must be >= 1, got " + std::to_string(dim));
    tables_.push_back({name, dim, 0, {}});
  }
  for (const Feature& feature : features) place(feature);
  for (const PlacedTable& table : tables_) {
    if (table.features.empty()) refuse("table", table.name, "must have a feature, got none");
    if (too_many(batch_size, table))
      refuse("table", table.name,
             "must have at most 2^62 numbers, got " + std::to_string(batch_size) + " * " +
                 std::to_string(table.num_features) + " * " + std::to_string(table.dim));
  }
}

void InterleavedLayout::place(const Feature& feature) {
  const auto& [name, table_name, length] = feature;
  if (find(features_, name) >= 0) refuse("feature", name, "names must be unique, got it twice");
  const std::int64_t t = find(tables_, table_name);
  if (t < 0) refuse("feature", name, "its table must be known, got '" + table_name + "'");
  if (length < 0)
    refuse("feature", name, "max_sequence_length must be >= 0, got " + std::to_string(length));
  PlacedTable& table = tables_[t];
  const std::int64_t slots = std::max<std::int64_t>(length, 1);
  table.features.push_back(std::ssize(features_));
  features_.push_back({name, t, length, table.num_features, slots});
  if (__builtin_add_overflow(table.num_features, slots, &table.num_features))
    refuse("table", table_name,
           "has too many slots, with " + std::to_string(slots) + " of '" + name + "'");
}

InterleavedLayout InterleavedLayout::sorted_by_name(std::vector<Table> tables,
                                                    std::vector<Feature> features,
                                                    std::int64_t batch_size) {
  std::ranges::sort(tables, {}, &Table::name);
  std::ranges::sort(features, {}, &Feature::name);
  return InterleavedLayout(tables, features, batch_size);
}

Shape InterleavedLayout::table_shape(std::int64_t table) const {
  const PlacedTable& t = tables_[table];
  return {batch_size_ * t.num_features, t.dim};
}

Shape InterleavedLayout::feature_shape(std::int64_t feature) const {
  const PlacedFeature& f = features_[feature];
  const std::int64_t dim = tables_[f.table].dim;
  return f.max_sequence_length > 0 ? Shape{batch_size_, f.slots, dim} : Shape{batch_size_, dim};
}

InterleavedLayout interleaved_layout(const Embedding& engine) {
  if (!engine.accelerated() || !engine.built())
    throw StateError("interleaved_layout: needs an engine with a strategy that is built");
  std::vector<InterleavedLayout::Table> tables;
  for (const TableInfo& table : engine.tables()) tables.push_back({table.name, table.dim});
  const Nested<FeatureConfig>& configured = engine.feature_config();
  std::vector<const TableConfig*> known;  // in the order of `tables`
  std::vector<InterleavedLayout::Feature> features;
  const std::int64_t batch_size = leading_dim(engine.output_shapes());
  for (std::int64_t i = 0; i < configured.size(); ++i) {
    const TableConfig* const table = configured[i].table.get();
    auto at = std::ranges::find(known, table) - known.begin();
    if (at == std::ssize(known)) known.push_back(table);
    features.push_back(
        {configured.path(i), tables[at].name,
         sequence_length(configured.path(i), engine.output_shapes()[i], batch_size)});
  }
  return InterleavedLayout(tables, features, batch_size);
}

}  // namespace embertable
