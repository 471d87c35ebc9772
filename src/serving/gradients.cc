#include <string_view>

#include "base/float_environment.h"
#include "embertable/errors.h"
#include "embertable/serving.h"
#include "serving/row_updates.h"

namespace embertable {
namespace {

using serving::EntrySource;

/// The tables that features name, in the order of the first feature of each.
struct NamedTables {
  std::vector<TablePtr> tables;
  std::vector<std::int64_t> table_of;  ///< by feature

  explicit NamedTables(const Nested<FeatureConfig>& features) {
    std::map<TablePtr, std::int64_t> number;
    for (const FeatureConfig& feature : features.leaves()) {
      const auto [known, is_new] = number.emplace(feature.table, std::ssize(tables));
      if (is_new) tables.push_back(feature.table);
      table_of.push_back(known->second);
    }
  }
};

}  // namespace

std::map<TablePtr, GradientSumsOfTable> serving_embedding_gradients(
    const Batch& inputs, const Nested<Gradient>& upstream,
    const std::map<TablePtr, TableView>& tables, const Nested<FeatureConfig>& feature_config) {
  const FloatEnvironment ours;
  serving::Lookup lookup;
  lookup.prepare(inputs, feature_config,
                 [&](std::int64_t feature) {
                   return serving::viewed_rows(feature_config[feature].table, tables);
                 },
                 {});
  Arena memory;
  const NamedTables named(feature_config);
  std::vector<std::vector<EntrySource>> sources(named.tables.size());
  serving::append_sources(lookup, serving::take_gradients(lookup, upstream, -1, memory), -1,
                          named.table_of, sources);

  const std::shared_ptr<Executor> executor = make_inline_executor();
  serving::RowUpdates updates(*executor, simd_level());
  for (std::size_t t = 0; t < sources.size(); ++t) {
    const TablePtr& table = named.tables[t];
    RowBlock rows;
    rows.dim = table->dim;
    if (!sources[t].empty()) {  // without sources the caller need not have the table
      const TableView& view = tables.at(table);
      rows.row = view.data;
      rows.half = view.bfloat16;
      if (view.bfloat16 != nullptr) rows.type = RowType::kBfloat16;
      rows.stride = view.row_stride;
      rows.rows = table->vocabulary_size;
    }
    updates.add(table->name ? std::string_view(*table->name) : "", rows, sources[t]);
  }
  updates.prepare();
  updates.run();
  std::map<TablePtr, GradientSumsOfTable> gradients;
  for (std::size_t t = 0; t < sources.size(); ++t)
    gradients[named.tables[t]] =
        serving::in_order(updates.sums(static_cast<std::int64_t>(t)), named.tables[t]->dim);
  return gradients;
}

}  // namespace embertable
