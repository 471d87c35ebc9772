#include <fmt/format.h>

#include "embertable/errors.h"
#include "optimizer/rule.h"

#define EMBERTABLE_LEVEL_BODY "optimizer/rules/ftrl.inl"
#include "kernels/for_each_level.inl"

namespace embertable {
namespace {

float initial_accumulator(const Optimizer& optimizer) {
  return static_cast<float>(optimizer.parameter("initial_accumulator_value"));
}

/// Source: TF tpu_embedding_v2_utils.py, FTRL; of a power or strengths outside their ranges
/// tpu_embedding.py, FtrlParameters, which also starts accumulators at zero if asked to.
class FtrlRule final : public Rule {
 public:
  std::string_view name() const noexcept override { return "ftrl"; }
  std::span<const RuleParameter> parameters() const noexcept override {
    static constexpr RuleParameter kParameters[] = {
        {.name = "learning_rate_power", .default_value = -0.5, .high = 0},
        {.name = "l1_regularization_strength", .low = 0},
        {.name = "l2_regularization_strength", .low = 0},
        {.name = "beta", .low = 0},
        {.name = "initial_accumulator_value", .default_value = 0.1, .low = 0},
        {.name = "multiply_linear_by_learning_rate", .choices = kFlag},
        {.name = "allow_zero_accumulator", .choices = kFlag}};
    return kParameters;
  }
  double default_learning_rate() const noexcept override { return 0.001; }

  std::vector<RuleSlot> slots(const Optimizer& optimizer) const override {
    return {{.name = "accumulators", .initial_value = initial_accumulator(optimizer)},
            {.name = "linears"}};
  }

  void check(const Optimizer& optimizer) const override {
    if (initial_accumulator(optimizer) > 0 || optimizer.parameter("allow_zero_accumulator") != 0)
      return;
    throw ValueError(fmt::format(
        "ftrl: initial_accumulator_value must be > 0 unless allow_zero_accumulator is true, got {}",
        optimizer.parameter("initial_accumulator_value")));
  }

 protected:
  const RuleForms& forms(SimdLevel level, const Optimizer&) const noexcept override {
    return EMBERTABLE_AT_LEVEL(level, kForms);
  }
};

}  // namespace

const Rule& ftrl_rule() noexcept {
  static const FtrlRule rule;
  return rule;
}

}  // namespace embertable
