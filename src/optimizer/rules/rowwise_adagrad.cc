#include <fmt/format.h>

#include "embertable/errors.h"
#include "optimizer/rule.h"

#define EMBERTABLE_LEVEL_BODY "optimizer/rules/rowwise_adagrad.inl"
#include "kernels/for_each_level.inl"

namespace embertable {
namespace {

/// Source: FBGEMM 1.9, EXACT_ROWWISE_ADAGRAD and its WeightDecayMode.
class RowwiseAdagradRule final : public Rule {
 public:
  /// l2: the decay is part of the gradient; decoupled: it is not.
  static constexpr std::string_view kModes[] = {"none", "l2", "decoupled"};

  std::string_view name() const noexcept override { return "rowwise_adagrad"; }
  std::span<const RuleParameter> parameters() const noexcept override {
    static constexpr RuleParameter kParameters[] = {
        {.name = "initial_accumulator_value", .default_value = 0, .low = 0},
        {.name = "epsilon", .default_value = 1e-8, .low = 0},
        {.name = "weight_decay", .default_value = 0, .low = 0},
        {.name = "weight_decay_mode", .default_value = 0, .choices = kModes}};
    return kParameters;
  }
  double default_learning_rate() const noexcept override { return 0.01; }

  std::vector<RuleSlot> slots(const Optimizer& optimizer) const override {
    return {
        {.name = "accumulators",
         .row_wise = true,
         .initial_value = static_cast<float>(optimizer.parameter("initial_accumulator_value"))}};
  }

  void check(const Optimizer& optimizer) const override {
    check_no_common_decay(optimizer);
    const double decay = optimizer.parameter("weight_decay");
    if (!decays(optimizer) && decay != 0) {
      throw ValueError(fmt::format(
          "{}: weight_decay must be 0 where weight_decay_mode is none, got {}", name(), decay));
    }
  }

 protected:
  const RuleForms& forms(SimdLevel level, const Optimizer& optimizer) const noexcept override {
    return decays(optimizer) ? EMBERTABLE_AT_LEVEL(level, kDecayForms)
                             : EMBERTABLE_AT_LEVEL(level, kForms);
  }

 private:
  static bool decays(const Optimizer& optimizer) noexcept {
    return optimizer.parameter("weight_decay_mode") != 0;
  }
};

}  // namespace

const Rule& rowwise_adagrad_rule() noexcept {
  static const RowwiseAdagradRule rule;
  return rule;
}

}  // namespace embertable
