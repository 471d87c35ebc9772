#include "optimizer/rule.h"

#define EMBERTABLE_LEVEL_BODY "optimizer/rules/frequency_aware_adagrad.inl"
#include "kernels/for_each_level.inl"

namespace embertable {
namespace {

/// Source: TF optimization_parameters.proto, FrequencyAwareAdagradParameters, with the quotient and
/// the rate as the SparseCore kernel has them. No defaults are published: here the scale is the
/// root of the quotient, at most 100, and nothing decays.
class FrequencyAwareAdagradRule final : public Rule {
 public:
  std::string_view name() const noexcept override { return "frequency_aware_adagrad"; }
  std::span<const RuleParameter> parameters() const noexcept override {
    static constexpr RuleParameter kParameters[] = {
        {.name = "l1_regularization_strength", .low = 0},
        {.name = "l2_regularization_strength", .low = 0},
        {.name = "max_lr_multiplier", .default_value = 100, .low = 0, .low_open = true},
        {.name = "probability_exponent", .default_value = 0.5, .low = 0},
        {.name = "accumulator_decay", .default_value = 1, .low = 0, .high = 1},
        {.name = "initial_accumulator_value", .default_value = 0.1, .low = 0, .low_open = true}};
    return kParameters;
  }
  double default_learning_rate() const noexcept override { return 0.001; }

  std::vector<RuleSlot> slots(const Optimizer& optimizer) const override {
    return {{.name = "accumulators",
             .initial_value = static_cast<float>(optimizer.parameter("initial_accumulator_value"))},
            {.name = "counters"}};
  }

 protected:
  void scalars(const Optimizer&, const StepInputs& inputs,
               StepScalars& step) const noexcept override {
    step.value[6] = inputs.step_counter < 1 ? 1 : inputs.step_counter;
  }

  const RuleForms& forms(SimdLevel level, const Optimizer&) const noexcept override {
    return EMBERTABLE_AT_LEVEL(level, kForms);
  }
};

}  // namespace

const Rule& frequency_aware_adagrad_rule() noexcept {
  static const FrequencyAwareAdagradRule rule;
  return rule;
}

}  // namespace embertable
