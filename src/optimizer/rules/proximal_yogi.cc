#include "optimizer/rule.h"

#define EMBERTABLE_LEVEL_BODY "optimizer/rules/proximal_yogi.inl"
#include "kernels/for_each_level.inl"

namespace embertable {
namespace {

/// Source: TF tpu_embedding.py, ProximalYogiParameters; TF Addons, Yogi. The rate comes with its
/// correction for bias.
class ProximalYogiRule final : public Rule {
 public:
  std::string_view name() const noexcept override { return "proximal_yogi"; }
  std::span<const RuleParameter> parameters() const noexcept override {
    static constexpr RuleParameter kParameters[] = {
        {.name = "beta1", .default_value = 0.9, .low = 0, .high = 1, .high_open = true},
        {.name = "beta2", .default_value = 0.999, .low = 0, .high = 1, .high_open = true},
        {.name = "epsilon", .default_value = 1e-3, .low = 0, .low_open = true},
        {.name = "l1", .low = 0},
        {.name = "l2", .low = 0},
        {.name = "initial_accumulator_value", .default_value = 1e-6, .low = 0}};
    return kParameters;
  }
  double default_learning_rate() const noexcept override { return 0.01; }

  std::vector<RuleSlot> slots(const Optimizer& optimizer) const override {
    return {{.name = "v",
             .initial_value = static_cast<float>(optimizer.parameter("initial_accumulator_value"))},
            {.name = "m"}};
  }

 protected:
  const RuleForms& forms(SimdLevel level, const Optimizer&) const noexcept override {
    return EMBERTABLE_AT_LEVEL(level, kForms);
  }
};

}  // namespace

const Rule& proximal_yogi_rule() noexcept {
  static const ProximalYogiRule rule;
  return rule;
}

}  // namespace embertable
