#include "config/table_list.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "embertable/errors.h"

namespace embertable {
namespace {

/// Checkpoints, messages and parts of a batch name a feature by its path.
void check_paths(const std::vector<std::string>& paths) {
  std::set<std::string_view> taken;
  for (const std::string& path : paths) {
    if (!taken.insert(path).second)
      throw ValueError("features: their paths must be distinct, got '" + path + "' twice");
  }
}

void check_feature(const Nested<FeatureConfig>& features, std::int64_t feature) {
  try {
    validate(features[feature]);
  } catch (const ValueError& error) {
    throw ValueError("feature '" + features.path(feature) + "': " + error.what());
  }
}

/// Position of each table in the list.
using Positions = std::map<const TableConfig*, std::int64_t>;

/// Returns the position of a table, which is appended if it is new.
std::int64_t position_of(const TablePtr& table, std::vector<ListedTable>& tables,
                         Positions& positions) {
  const auto [known, is_new] = positions.emplace(table.get(), std::ssize(tables));
  if (is_new) tables.push_back({table, *table, {}});
  return known->second;
}

void name_tables(std::vector<ListedTable>& tables) {
  std::set<std::string> taken;
  for (std::size_t i = 0; i < tables.size(); ++i) {
    auto& name = tables[i].config.name;
    if (!name) name = "table_" + std::to_string(i);
    if (!taken.insert(*name).second)
      throw ValueError("table '" + *name + "': the name is taken by an earlier table");
  }
}

}  // namespace

TableList list_tables(const Nested<FeatureConfig>& features, const std::vector<TablePtr>& others) {
  check_paths(features.structure().paths());
  TableList list;
  Positions positions;
  for (std::int64_t feature = 0; feature < features.size(); ++feature) {
    check_feature(features, feature);
    const std::int64_t table = position_of(features[feature].table, list.tables, positions);
    list.table_of.push_back(table);
    list.tables[table].features.push_back(feature);
  }
  for (const TablePtr& table : others) position_of(table, list.tables, positions);
  name_tables(list.tables);
  for (const ListedTable& table : list.tables) {
    if (!table.config.custom_combiner) continue;
    throw NotImplemented("table '" + table.name() +
                         "': a custom_combiner is not offered, use combiner sum, mean or sqrtn");
  }
  for (ListedTable& table : list.tables) {
    TableConfig& config = table.config;
    if (!config.initializer) config.initializer = Initializer::default_for(config.dim);
    config.initializer->check(*config.name, config.vocabulary_size, config.dim);
  }
  return list;
}

}  // namespace embertable
