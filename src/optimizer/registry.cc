#include <string>
#include <vector>

#include "base/nearest.h"
#include "embertable/errors.h"
#include "optimizer/custom_rule.h"
#include "optimizer/rule.h"
#include "optimizer/variants.h"

namespace embertable {

/// Every rule, sorted by name. The function <name>_rule is defined in <name>.cc.
#define EMBERTABLE_RULES(RULE)  \
  RULE(adadelta)                \
  RULE(adagrad)                 \
  RULE(adagrad_momentum)        \
  RULE(adam)                    \
  RULE(adamw)                   \
  RULE(assign)                  \
  RULE(bounded_adagrad)         \
  RULE(centered_rms_prop)       \
  RULE(frequency_aware_adagrad) \
  RULE(frequency_estimator)     \
  RULE(ftrl)                    \
  RULE(lamb)                    \
  RULE(lars_sgd)                \
  RULE(lion)                    \
  RULE(mdl_adagrad_light)       \
  RULE(momentum)                \
  RULE(none)                    \
  RULE(online_yogi)             \
  RULE(partial_rowwise_adam)    \
  RULE(partial_rowwise_lamb)    \
  RULE(proximal_adagrad)        \
  RULE(proximal_yogi)           \
  RULE(rms_prop)                \
  RULE(rowwise_adagrad)         \
  RULE(sgd)

#define EMBERTABLE_DECLARE_RULE(name) const Rule& name##_rule() noexcept;
EMBERTABLE_RULES(EMBERTABLE_DECLARE_RULE)
#undef EMBERTABLE_DECLARE_RULE

std::span<const Rule* const> all_rules() noexcept {
#define EMBERTABLE_LIST_RULE(name) &name##_rule(),
  static const Rule* const rules[] = {EMBERTABLE_RULES(EMBERTABLE_LIST_RULE)};
#undef EMBERTABLE_LIST_RULE
  return rules;
}

const Rule& find_rule(std::string_view name) {
  std::vector<std::string_view> known;
  for (const Rule* rule : all_rules()) {
    if (rule->name() == name) return *rule;
    known.push_back(rule->name());
  }
  for (const OptimizerVariant& variant : all_variants()) known.push_back(variant.name);
  throw ValueError("optimizer '" + std::string(name) + "' is not known; the nearest is '" +
                   std::string(nearest_name(name, known)) + "'");
}

const Rule& rule_of(const Optimizer& optimizer) noexcept {
  return optimizer.custom_rule() ? custom_rule() : find_rule(optimizer.rule());
}

}  // namespace embertable
