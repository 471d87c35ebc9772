#include "optimizer/rule.h"

#define EMBERTABLE_LEVEL_BODY "optimizer/rules/centered_rms_prop.inl"
#include "kernels/for_each_level.inl"

namespace embertable {
namespace {

/// Defaults: Keras RMSprop, which adds epsilon in the root too. Source: TF core kernels,
/// ApplyCenteredRMSProp.
class CenteredRmsPropRule final : public Rule {
 public:
  std::string_view name() const noexcept override { return "centered_rms_prop"; }
  std::span<const RuleParameter> parameters() const noexcept override {
    static constexpr RuleParameter kParameters[] = {
        {.name = "rho", .default_value = 0.9, .low = 0, .high = 1},
        {.name = "momentum", .default_value = 0, .low = 0, .high = 1, .high_open = true},
        {.name = "epsilon", .default_value = 1e-7, .low = 0, .low_open = true}};
    return kParameters;
  }
  double default_learning_rate() const noexcept override { return 0.001; }

  std::vector<RuleSlot> slots(const Optimizer&) const override {
    return {{.name = "ms"}, {.name = "mom"}, {.name = "mg"}};
  }

 protected:
  const RuleForms& forms(SimdLevel level, const Optimizer&) const noexcept override {
    return EMBERTABLE_AT_LEVEL(level, kForms);
  }
};

}  // namespace

const Rule& centered_rms_prop_rule() noexcept {
  static const CenteredRmsPropRule rule;
  return rule;
}

}  // namespace embertable
