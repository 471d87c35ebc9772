#include "engine/setup/assembly.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "base/bfloat16.h"
#include "embertable/errors.h"
#include "optimizer/slots_only.h"

namespace embertable::engine {
namespace {

std::string limit_text(const std::optional<double>& limit) {
  return limit ? fmt::format("{}", *limit) : "none";
}

/// Throws ValueError for limits that leave no finite number to a row of bfloat16.
void check_limits_of_halves(const ResolvedTable& table) {
  const OptimizerOptions& options = table.optimizer->options();
  if (table.config.row_type != RowType::kBfloat16) return;
  constexpr double kNone = std::numeric_limits<double>::infinity();
  constexpr float kLargest = half_below(std::numeric_limits<float>::max());
  const double low = options.clip_weight_min.value_or(-kNone),
               high = options.clip_weight_max.value_or(kNone);
  if (std::max(half_above(static_cast<float>(low)), -kLargest) <=
      std::min(half_below(static_cast<float>(high)), kLargest))
    return;
  throw ValueError(fmt::format(
      "table '{}': there must be a number of bfloat16 between clip_weight_min and "
      "clip_weight_max, got {} and {}",
      table.name(), limit_text(options.clip_weight_min), limit_text(options.clip_weight_max)));
}

void choose_optimizer(ResolvedTable& table, const std::optional<Optimizer>& global, bool required) {
  table.optimizer = table.config.optimizer ? table.config.optimizer : global;
  if (table.optimizer) {
    table.rule = &rule_of(*table.optimizer);
    table.scalars = table.rule->scalars(*table.optimizer);
    try {
      table.rule->check_dim(table.config.dim);
    } catch (const ValueError& error) {
      throw ValueError("table '" + table.name() + "': " + error.what());
    }
    check_limits_of_halves(table);
  } else if (required) {
    throw ValueError(
        "table '" + table.name() +
        "': an engine with a strategy needs an optimizer, of the table or of the engine; got none");
  }
}

/// Sets the first values of every slot: those of the optimizer's function, else the rule's.
void choose_slots(ResolvedTable& table, bool accelerated) {
  if (!table.optimizer) return;
  const auto& create = table.optimizer->options().slot_variable_creation_fn;
  const TableConfig& config = table.config;
  for (const RuleSlot& slot : table.slots()) {
    const std::string name = table.name() + "/" + std::string(slot.name);
    const Initializer initializer =
        create ? (*create)(config, slot.name, slot.row_wise)
               : slot.initializer.value_or(Initializer::constant(slot.initial_value));
    if (create && accelerated && initializer.is_materialized()) {
      throw ValueError("slot '" + name +
                       "': with a strategy slots are filled shard by shard, so "
                       "slot_variable_creation_fn must give a function of rows, got the array " +
                       initializer.to_string());
    }
    initializer.check(name, config.vocabulary_size, slot.row_wise ? 1 : config.dim);
    table.slot_initializers.push_back(initializer);
  }
}

/// Returns the rate's tag: its position among all dynamic rates.
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
  if (const auto& counter = table.optimizer->options().step_counter;
      counter && table.rule->counts_steps())
    table.counter_tag = tag(assembly, *counter, name + "step_counter", false);
}

}  // namespace

Assembly assemble(const Nested<FeatureConfig>& features, const std::optional<Optimizer>& optimizer,
                  bool accelerated) {
  TableList list = list_tables(features);
  Assembly assembly{{}, std::move(list.table_of), {}};
  for (ListedTable& listed : list.tables) {
    ResolvedTable& table = assembly.tables.emplace_back();
    static_cast<ListedTable&>(table) = std::move(listed);
    choose_optimizer(table, optimizer, accelerated);
    choose_slots(table, accelerated);
    tag_rates(assembly, table);
  }
  return assembly;
}

StepScalars ResolvedTable::begin_step(std::span<const float> rates,
                                      std::int64_t number) const noexcept {
  const auto value = [&](const LearningRate& rate, std::int32_t tag) {
    return tag >= 0 ? rates[tag] : static_cast<float>(rate.constant());
  };
  const std::optional<LearningRate>& counter = optimizer->options().step_counter;
  return rule->begin_step(
      *optimizer, scalars,
      {.learning_rate = value(optimizer->learning_rate(), rate_tag),
       .step = number,
       .step_counter = counter ? value(*counter, counter_tag) : static_cast<float>(number)});
}

float DynamicRate::ask(std::int64_t number) const {
  const double given = rate.value(number);
  const auto rounded = static_cast<float>(given);
  if (!std::isfinite(rounded) || (is_rate && rounded < 0)) {
    throw ValueError(fmt::format("{} must be finite{}, its function gave {} for step {}", name,
                                 is_rate ? " and >= 0" : "", given, number));
  }
  return rounded;
}

void ask_rates(const Assembly& assembly, std::int64_t number, std::vector<float>& rates) {
  for (const ResolvedTable& table : assembly.tables)
    if (table.optimizer && is_slots_only(*table.optimizer))
      throw StateError("apply_gradients: table '" + table.name() +
                       "' has slots_only, which steps no row; give an update of your own");
  rates.clear();
  for (const DynamicRate& dynamic : assembly.dynamic_rates) rates.push_back(dynamic.ask(number));
}

std::vector<TableInfo> table_info(const Assembly& assembly, bool trainable) {
  std::vector<TableInfo> all;
  for (const ResolvedTable& table : assembly.tables) {
    TableInfo& info = all.emplace_back();
    info.name = table.name();
    info.vocabulary_size = table.config.vocabulary_size;
    info.dim = table.config.dim;
    info.combiner = table.config.combiner;
    if (table.optimizer) info.optimizer = table.optimizer->to_string();
    for (const RuleSlot& slot : table.slots())
      info.slots.push_back({.name = std::string(slot.name), .row_wise = slot.row_wise});
    info.trainable = trainable;
    info.row_type = table.config.row_type;
  }
  return all;
}

}  // namespace embertable::engine
