#include "optimizer/rule.h"

#define EMBERTABLE_LEVEL_BODY "optimizer/rowwise_adagrad.inl"
#include "kernels/for_each_level.inl"

namespace embertable {
namespace {

/// Source: FBGEMM 1.9, EXACT_ROWWISE_ADAGRAD without weight decay.
class RowwiseAdagradRule final : public Rule {
 public:
  std::string_view name() const noexcept override { return "rowwise_adagrad"; }
  std::span<const RuleParameter> parameters() const noexcept override {
    static constexpr RuleParameter kParameters[] = {
        {.name = "initial_accumulator_value", .default_value = 0, .low = 0},
        {.name = "epsilon", .default_value = 1e-8, .low = 0}};
    return kParameters;
  }
  double default_learning_rate() const noexcept override { return 0.01; }

  std::vector<RuleSlot> slots(const Optimizer& optimizer) const override {
    return {
        {.name = "accumulators",
         .row_wise = true,
         .initial_value = static_cast<float>(optimizer.parameter("initial_accumulator_value"))}};
  }

 protected:
  const RuleForms& forms(SimdLevel level, const Optimizer&) const noexcept override {
    return EMBERTABLE_AT_LEVEL(level, kForms);
  }
};

}  // namespace

const Rule& rowwise_adagrad_rule() noexcept {
  static const RowwiseAdagradRule rule;
  return rule;
}

}  // namespace embertable
