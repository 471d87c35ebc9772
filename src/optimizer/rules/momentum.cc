#include "optimizer/rule.h"

#define EMBERTABLE_LEVEL_BODY "optimizer/rules/momentum.inl"
#include "kernels/for_each_level.inl"

namespace embertable {
namespace {

/// Source: TF core kernels, ApplyMomentum, which has no default momentum; that of FBGEMM 1.9.
class MomentumRule final : public Rule {
 public:
  std::string_view name() const noexcept override { return "momentum"; }
  std::span<const RuleParameter> parameters() const noexcept override {
    static constexpr RuleParameter kParameters[] = {
        {.name = "momentum", .default_value = 0.9, .low = 0, .high = 1, .high_open = true},
        {.name = "use_nesterov", .default_value = 0, .choices = kFlag}};
    return kParameters;
  }
  double default_learning_rate() const noexcept override { return 0.01; }

  std::vector<RuleSlot> slots(const Optimizer&) const override { return {{.name = "momenta"}}; }

 protected:
  const RuleForms& forms(SimdLevel level, const Optimizer&) const noexcept override {
    return EMBERTABLE_AT_LEVEL(level, kForms);
  }
};

}  // namespace

const Rule& momentum_rule() noexcept {
  static const MomentumRule rule;
  return rule;
}

}  // namespace embertable
