#include "optimizer/rule.h"

#define EMBERTABLE_LEVEL_BODY "optimizer/rules/bounded_adagrad.inl"
#include "kernels/for_each_level.inl"

namespace embertable {
namespace {

/// Source: TF optimization_parameters.proto, BoundedAdagradParameters: what it bounds is the change
/// of the variable. The accumulator starts as that of TF tpu_embedding_v2_utils.py, Adagrad.
class BoundedAdagradRule final : public Rule {
 public:
  std::string_view name() const noexcept override { return "bounded_adagrad"; }
  std::span<const RuleParameter> parameters() const noexcept override {
    static constexpr RuleParameter kParameters[] = {
        {.name = "update_accumulator_first", .choices = kFlag},
        {.name = "max_var_update", .low = 0},   // 0: none
        {.name = "max_accumulator", .low = 0},  // 0: none
        {.name = "initial_accumulator_value", .default_value = 0.1, .low = 0, .low_open = true}};
    return kParameters;
  }
  double default_learning_rate() const noexcept override { return 0.001; }

  std::vector<RuleSlot> slots(const Optimizer& optimizer) const override {
    return {
        {.name = "accumulators",
         .initial_value = static_cast<float>(optimizer.parameter("initial_accumulator_value"))}};
  }

 protected:
  const RuleForms& forms(SimdLevel level, const Optimizer&) const noexcept override {
    return EMBERTABLE_AT_LEVEL(level, kForms);
  }
};

}  // namespace

const Rule& bounded_adagrad_rule() noexcept {
  static const BoundedAdagradRule rule;
  return rule;
}

}  // namespace embertable
