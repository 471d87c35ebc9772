#include "optimizer/bias_correction.h"
#include "optimizer/rule.h"

#define EMBERTABLE_LEVEL_BODY "optimizer/rules/adamw.inl"
#include "kernels/for_each_level.inl"

namespace embertable {
namespace {

/// Adam with bias correction, and a decay that is no gradient. With use_rowwise_bias_correction a
/// row's own updates count instead of the table's steps, up to 2^24. Defaults: FBGEMM 1.9. Source:
/// torch AdamW; FBGEMM 1.9, ADAM and its use_rowwise_bias_correction.
class AdamWRule final : public Rule {
 public:
  std::string_view name() const noexcept override { return "adamw"; }
  std::span<const RuleParameter> parameters() const noexcept override {
    static constexpr RuleParameter kParameters[] = {
        {.name = "beta1", .default_value = 0.9, .low = 0, .high = 1, .high_open = true},
        {.name = "beta2", .default_value = 0.999, .low = 0, .high = 1, .high_open = true},
        {.name = "epsilon", .default_value = 1e-8, .low = 0, .low_open = true},
        {.name = "weight_decay", .default_value = 0, .low = 0},
        {.name = "use_rowwise_bias_correction", .default_value = 0, .choices = kFlag}};
    return kParameters;
  }
  double default_learning_rate() const noexcept override { return 0.01; }

  std::vector<RuleSlot> slots(const Optimizer& optimizer) const override {
    std::vector<RuleSlot> slots = {{.name = "momenta"}, {.name = "velocities"}};
    if (counts_rows(optimizer)) slots.push_back({.name = "row_counters", .row_wise = true});
    return slots;
  }

  void check(const Optimizer& optimizer) const override { check_no_common_decay(optimizer); }

 protected:
  void scalars(const Optimizer&, const StepInputs& inputs,
               StepScalars& step) const noexcept override {
    const BiasCorrection correction(step.value[0], step.value[1], inputs.step);
    step.value[5] = correction.rate(inputs.learning_rate);
    step.value[6] = correction.epsilon(step.value[2]);
    step.value[7] = kept(inputs.learning_rate, step.value[3]);
  }
  const RuleForms& forms(SimdLevel level, const Optimizer& optimizer) const noexcept override {
    return counts_rows(optimizer) ? EMBERTABLE_AT_LEVEL(level, kCountingForms)
                                  : EMBERTABLE_AT_LEVEL(level, kForms);
  }

 private:
  static bool counts_rows(const Optimizer& optimizer) noexcept {
    return optimizer.parameter("use_rowwise_bias_correction") != 0;
  }
};

}  // namespace

const Rule& adamw_rule() noexcept {
  static const AdamWRule rule;
  return rule;
}

}  // namespace embertable
