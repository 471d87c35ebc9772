#include "optimizer/rule.h"

#define EMBERTABLE_LEVEL_BODY "optimizer/rules/adadelta.inl"
#include "kernels/for_each_level.inl"

namespace embertable {
namespace {

/// Defaults: Keras Adadelta. Source: TF core kernels, ApplyAdadelta.
class AdadeltaRule final : public Rule {
 public:
  std::string_view name() const noexcept override { return "adadelta"; }
  std::span<const RuleParameter> parameters() const noexcept override {
    static constexpr RuleParameter kParameters[] = {
        {.name = "rho", .default_value = 0.95, .low = 0, .high = 1},
        {.name = "epsilon", .default_value = 1e-7, .low = 0, .low_open = true}};
    return kParameters;
  }
  double default_learning_rate() const noexcept override { return 0.001; }

  std::vector<RuleSlot> slots(const Optimizer&) const override {
    return {{.name = "accumulators"}, {.name = "updates"}};
  }

 protected:
  const RuleForms& forms(SimdLevel level, const Optimizer&) const noexcept override {
    return EMBERTABLE_AT_LEVEL(level, kForms);
  }
};

}  // namespace

const Rule& adadelta_rule() noexcept {
  static const AdadeltaRule rule;
  return rule;
}

}  // namespace embertable
