#include <algorithm>

#include "embertable/optimizer_rules.h"
#include "optimizer/range_text.h"
#include "optimizer/rule.h"

namespace embertable {
namespace {

OptimizerRule::Parameter described(const RuleParameter& parameter) {
  const std::string name(parameter.name);
  if (!parameter.is_choice()) return {name, parameter.default_value, {}, range_text(parameter)};
  const auto position = static_cast<std::size_t>(parameter.default_value);
  if (parameter.choices.data() == kFlag) return {name, position == 1, {}, {}};
  return {name,
          std::string(parameter.choices[position]),
          {parameter.choices.begin(), parameter.choices.end()},
          {}};
}

}  // namespace

std::vector<OptimizerSlot> slots_of(const Optimizer& optimizer) {
  std::vector<OptimizerSlot> slots;
  for (const RuleSlot& slot : rule_of(optimizer).slots(optimizer))
    slots.push_back({std::string(slot.name), slot.row_wise, slot.initial_value});
  return slots;
}

std::vector<OptimizerRule> describe_optimizer_rules() {
  std::vector<OptimizerRule> all;
  for (const Rule& rule : all_rules()) {
    OptimizerRule& one = all.emplace_back();
    one.name = rule.name();
    one.default_learning_rate = rule.default_learning_rate();
    std::ranges::transform(rule.parameters(), std::back_inserter(one.parameters), described);
    one.slots = slots_of(Optimizer(one.name, one.default_learning_rate));
  }
  return all;
}

}  // namespace embertable
