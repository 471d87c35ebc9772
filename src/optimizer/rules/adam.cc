#include "optimizer/rule.h"

#define EMBERTABLE_LEVEL_BODY "optimizer/rules/adam.inl"
#include "kernels/for_each_level.inl"

namespace embertable {
namespace {

/// No bias correction: a caller who wants it gives lr * sqrt(1-beta_2^t) / (1-beta_1^t) as rate.
/// Source: TF tpu_embedding_v2_utils.py, Adam.
class AdamRule final : public Rule {
 public:
  std::string_view name() const noexcept override { return "adam"; }
  std::span<const RuleParameter> parameters() const noexcept override {
    static constexpr RuleParameter kParameters[] = {
        {.name = "beta_1", .default_value = 0.9, .low = 0, .high = 1, .high_open = true},
        {.name = "beta_2", .default_value = 0.999, .low = 0, .high = 1, .high_open = true},
        {.name = "epsilon", .default_value = 1e-7, .low = 0, .low_open = true},
        {.name = "lazy_adam", .default_value = 1, .choices = kFlag},
        {.name = "sum_inside_sqrt", .default_value = 1, .choices = kFlag}};
    return kParameters;
  }
  double default_learning_rate() const noexcept override { return 0.001; }

  std::vector<RuleSlot> slots(const Optimizer&) const override {
    return {{.name = "momenta"}, {.name = "velocities"}};
  }

  bool steps_every_row(const Optimizer& optimizer) const noexcept override {
    return optimizer.parameter("lazy_adam") == 0;
  }

  void check(const Optimizer& optimizer) const override {
    if (steps_every_row(optimizer)) check_accumulation(optimizer, "lazy_adam");
  }

 protected:
  const RuleForms& forms(SimdLevel level, const Optimizer&) const noexcept override {
    return EMBERTABLE_AT_LEVEL(level, kForms);
  }
};

}  // namespace

const Rule& adam_rule() noexcept {
  static const AdamRule rule;
  return rule;
}

}  // namespace embertable
