#include "engine/assembly.h"

#include <algorithm>
#include <utility>

#include "embertable/errors.h"

namespace embertable::engine {
namespace {

void choose_optimizer(ResolvedTable& table, const std::optional<Optimizer>& global, bool required) {
  table.optimizer = table.config.optimizer ? table.config.optimizer : global;
  if (table.optimizer) {
    table.rule = &rule_of(*table.optimizer);
    try {
      table.rule->check_dim(table.config.dim);
    } catch (const ValueError& error) {
      throw ValueError("table '" + table.name() + "': " + error.what());
    }
  } else if (required) {
    throw ValueError(
        "table '" + table.name() +
        "': an engine with a strategy needs an optimizer, of the table or of the engine; got none");
  }
}

/// First values of every slot: those of the optimizer's function, else the rule's.
void choose_slots(ResolvedTable& table) {
  if (!table.optimizer) return;
  const auto& create = table.optimizer->options().slot_variable_creation_fn;
  const TableConfig& config = table.config;
  for (const RuleSlot& slot : table.slots()) {
    const Initializer initializer =
        create ? (*create)(config, slot.name, slot.row_wise)
               : slot.initializer.value_or(Initializer::constant(slot.initial_value));
    initializer.check(table.name() + "/" + std::string(slot.name), config.vocabulary_size,
                      slot.row_wise ? 1 : config.dim);
    table.slot_initializers.push_back(initializer);
  }
}

/// Its tag: the position of a dynamic rate among all.
std::int32_t tag(Assembly& assembly, const LearningRate& rate, const std::string& name,
                 bool is_rate) {
  if (!rate.is_dynamic()) return -1;
  auto& all = assembly.dynamic_rates;
  auto known = std::find_if(all.begin(), all.end(),
                            [&](const DynamicRate& other) { return other.rate == rate; });
  const auto position = static_cast<std::int32_t>(known - all.begin());
  if (known == all.end()) known = all.insert(known, {rate, name, is_rate});
  if (is_rate && !known->is_rate) *known = {rate, name, true};
  return position;
}

void tag_rates(Assembly& assembly, ResolvedTable& table) {
  if (!table.optimizer) return;
  const std::string name = "table '" + table.name() + "': ";
  table.rate_tag = tag(assembly, table.optimizer->learning_rate(), name + "learning_rate", true);
  if (const auto& counter = table.optimizer->options().step_counter)
    table.counter_tag = tag(assembly, *counter, name + "step_counter", false);
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
    choose_slots(table);
    tag_rates(assembly, table);
  }
  return assembly;
}

}  // namespace embertable::engine
