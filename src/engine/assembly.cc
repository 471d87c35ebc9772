#include "engine/assembly.h"

#include <algorithm>
#include <set>

#include "embertable/errors.h"

namespace embertable::engine {
namespace {

void check_feature(const Nested<FeatureConfig>& features, std::int64_t feature) {
  try {
    validate(features[feature]);
  } catch (const ValueError& error) {
    throw ValueError("feature '" + features.path(feature) + "': " + error.what());
  }
}

std::int64_t table_index(Assembly& assembly, const TablePtr& table) {
  auto& tables = assembly.tables;
  const auto known = std::find_if(tables.begin(), tables.end(),
                                  [&](const ResolvedTable& t) { return t.identity == table; });
  if (known != tables.end()) return known - tables.begin();
  ResolvedTable resolved;
  resolved.identity = table;
  resolved.config = *table;
  tables.push_back(std::move(resolved));
  return static_cast<std::int64_t>(tables.size()) - 1;
}

void name_tables(std::vector<ResolvedTable>& tables) {
  std::set<std::string> taken;
  for (std::size_t i = 0; i < tables.size(); ++i) {
    auto& name = tables[i].config.name;
    if (!name) name = "table_" + std::to_string(i);
    if (!taken.insert(*name).second) {
      throw ValueError("table '" + *name + "': the name is taken by an earlier table");
    }
  }
}

void choose_optimizer(ResolvedTable& table, const std::optional<Optimizer>& global, bool required) {
  table.optimizer = table.config.optimizer ? table.config.optimizer : global;
  if (table.optimizer) {
    table.rule = &find_rule(table.optimizer->rule());
  } else if (required) {
    throw ValueError(
        "table '" + table.name() +
        "': an engine with a strategy needs an optimizer, of the table or of the engine; got none");
  }
}

void tag_rate(Assembly& assembly, ResolvedTable& table) {
  if (!table.optimizer || !table.optimizer->learning_rate().is_dynamic()) return;
  auto& rates = assembly.dynamic_rates;
  const auto known = std::find(rates.begin(), rates.end(), table.optimizer->learning_rate());
  table.rate_tag = static_cast<std::int32_t>(known - rates.begin());
  if (known == rates.end()) rates.push_back(table.optimizer->learning_rate());
}

void check_initializer(ResolvedTable& table) {
  const TableConfig& config = table.config;
  table.config.initializer->check(table.name(), config.vocabulary_size, config.dim);
}

}  // namespace

Assembly assemble(const Nested<FeatureConfig>& features, const std::optional<Optimizer>& optimizer,
                  bool optimizer_required) {
  Assembly assembly;
  for (std::int64_t feature = 0; feature < features.size(); ++feature) {
    check_feature(features, feature);
    const std::int64_t table = table_index(assembly, features[feature].table);
    assembly.table_of.push_back(table);
    assembly.tables[static_cast<std::size_t>(table)].features.push_back(feature);
  }
  name_tables(assembly.tables);
  for (ResolvedTable& table : assembly.tables) {
    choose_optimizer(table, optimizer, optimizer_required);
    tag_rate(assembly, table);
    if (!table.config.initializer)
      table.config.initializer = Initializer::default_for(table.config.dim);
    check_initializer(table);
  }
  return assembly;
}

}  // namespace embertable::engine
