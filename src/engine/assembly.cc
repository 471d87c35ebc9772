#include "engine/assembly.h"

#include <algorithm>
#include <utility>

#include "embertable/errors.h"

namespace embertable::engine {
namespace {

void choose_optimizer(ResolvedTable& table, const std::optional<Optimizer>& global, bool required) {
  table.optimizer = table.config.optimizer ? table.config.optimizer : global;
  if (table.optimizer) {
    table.rule = &find_rule(table.optimizer->rule());
    table.rule->check_dim(table.config.dim);
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

}  // namespace

Assembly assemble(const Nested<FeatureConfig>& features, const std::optional<Optimizer>& optimizer,
                  bool optimizer_required) {
  TableList list = list_tables(features);
  Assembly assembly{{}, std::move(list.table_of), {}};
  for (ListedTable& listed : list.tables) {
    ResolvedTable& table = assembly.tables.emplace_back();
    static_cast<ListedTable&>(table) = std::move(listed);
    choose_optimizer(table, optimizer, optimizer_required);
    tag_rate(assembly, table);
  }
  return assembly;
}

}  // namespace embertable::engine
