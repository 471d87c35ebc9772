#include "optimizer/rule.h"

#define EMBERTABLE_LEVEL_BODY "optimizer/rules/online_yogi.inl"
#include "kernels/for_each_level.inl"

namespace embertable {
namespace {

/// Source: TF optimization_parameters.proto, OnlineYogiParameters: FTRL with the second moment of
/// Yogi (Zaheer et al. 2018, algorithm 2), whose beta2 is the default here.
class OnlineYogiRule final : public Rule {
 public:
  std::string_view name() const noexcept override { return "online_yogi"; }
  std::span<const RuleParameter> parameters() const noexcept override {
    static constexpr RuleParameter kParameters[] = {
        {.name = "l1", .low = 0},
        {.name = "l2", .low = 0},
        {.name = "beta2", .default_value = 0.999, .low = 0, .high = 1, .high_open = true},
        {.name = "initial_accumulator_value", .default_value = 0.1, .low = 0, .low_open = true}};
    return kParameters;
  }
  double default_learning_rate() const noexcept override { return 0.001; }

  std::vector<RuleSlot> slots(const Optimizer& optimizer) const override {
    return {{.name = "vs",
             .initial_value = static_cast<float>(optimizer.parameter("initial_accumulator_value"))},
            {.name = "linears"}};
  }

 protected:
  const RuleForms& forms(SimdLevel level, const Optimizer&) const noexcept override {
    return EMBERTABLE_AT_LEVEL(level, kForms);
  }
};

}  // namespace

const Rule& online_yogi_rule() noexcept {
  static const OnlineYogiRule rule;
  return rule;
}

}  // namespace embertable
