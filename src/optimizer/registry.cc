#include "optimizer/registry.h"

#include <string>
#include <vector>

#include "base/did_you_mean.h"
#include "embertable/errors.h"
#include "optimizer/custom_rule.h"
#include "optimizer/rule.h"
#include "optimizer/variants.h"

namespace embertable {

std::span<const Rule> all_rules() noexcept {
#define EMBERTABLE_RULE(name) Rule(rules::name),
  static const Rule all[] = {
#include "optimizer/rule_list.inl"
  };
#undef EMBERTABLE_RULE
  return all;
}

const Rule* known_rule(std::string_view name) {
  for (const Rule& rule : all_rules())
    if (equal_in_any_case(rule.name(), name)) return &rule;
  const OptimizerVariant* const variant = find_variant(name);
  return variant == nullptr ? nullptr : known_rule(variant->rule);
}

const Rule& find_rule(std::string_view name) {
  if (const Rule* const rule = known_rule(name)) return *rule;
  std::vector<std::string_view> known;
  for (const Rule& rule : all_rules()) known.push_back(rule.name());
  for (const OptimizerVariant& variant : all_variants()) known.push_back(variant.name);
  throw ValueError("optimizer '" + std::string(name) + "' is not known" +
                   did_you_mean(name, known));
}

const Rule& rule_of(const Optimizer& optimizer) noexcept {
  return optimizer.custom_rule() ? custom_rule() : find_rule(optimizer.rule());
}

}  // namespace embertable
