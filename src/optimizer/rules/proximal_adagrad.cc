#include "optimizer/rule.h"

#define EMBERTABLE_LEVEL_BODY "optimizer/rules/proximal_adagrad.inl"
#include "kernels/for_each_level.inl"

namespace embertable {
namespace {

/// Source: TF tpu_embedding.py, ProximalAdagradParameters; core kernels ApplyProximalAdagrad.
class ProximalAdagradRule final : public Rule {
 public:
  std::string_view name() const noexcept override { return "proximal_adagrad"; }
  std::span<const RuleParameter> parameters() const noexcept override {
    static constexpr RuleParameter kParameters[] = {
        {.name = "initial_accumulator_value", .default_value = 0.1, .low = 0, .low_open = true},
        {.name = "l1", .low = 0},
        {.name = "l2", .low = 0}};
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

const Rule& proximal_adagrad_rule() noexcept {
  static const ProximalAdagradRule rule;
  return rule;
}

}  // namespace embertable
