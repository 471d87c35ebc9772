#include "optimizer/bias_correction.h"
#include "optimizer/rule.h"

#define EMBERTABLE_LEVEL_BODY "optimizer/rules/partial_rowwise_adam.inl"
#include "kernels/for_each_level.inl"

namespace embertable {
namespace {

/// AdamW with one velocity a row, of the mean of squares. Defaults and source: FBGEMM 1.9,
/// PARTIAL_ROWWISE_ADAM.
class PartialRowwiseAdamRule final : public Rule {
 public:
  std::string_view name() const noexcept override { return "partial_rowwise_adam"; }
  std::span<const RuleParameter> parameters() const noexcept override {
    static constexpr RuleParameter kParameters[] = {
        {.name = "beta1", .default_value = 0.9, .low = 0, .high = 1, .high_open = true},
        {.name = "beta2", .default_value = 0.999, .low = 0, .high = 1, .high_open = true},
        {.name = "epsilon", .default_value = 1e-8, .low = 0, .low_open = true},
        {.name = "weight_decay", .default_value = 0, .low = 0}};
    return kParameters;
  }
  double default_learning_rate() const noexcept override { return 0.01; }

  std::vector<RuleSlot> slots(const Optimizer&) const override {
    return {{.name = "momenta"}, {.name = "velocities", .row_wise = true}};
  }

  void check(const Optimizer& optimizer) const override { check_no_common_decay(optimizer); }

 protected:
  void scalars(const Optimizer&, const StepInputs& inputs,
               StepScalars& step) const noexcept override {
    const BiasCorrection correction(step.value[0], step.value[1], inputs.step);
    step.value[4] = correction.rate(inputs.learning_rate);
    step.value[5] = correction.epsilon(step.value[2]);
    step.value[6] = kept(inputs.learning_rate, step.value[3]);
  }
  const RuleForms& forms(SimdLevel level, const Optimizer&) const noexcept override {
    return EMBERTABLE_AT_LEVEL(level, kForms);
  }
};

}  // namespace

const Rule& partial_rowwise_adam_rule() noexcept {
  static const PartialRowwiseAdamRule rule;
  return rule;
}

}  // namespace embertable
