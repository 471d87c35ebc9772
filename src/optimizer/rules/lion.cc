#include "optimizer/rule.h"

#define EMBERTABLE_LEVEL_BODY "optimizer/rules/lion.inl"
#include "kernels/for_each_level.inl"

namespace embertable {
namespace {

/// Defaults: optax lion and Keras Lion. Source: TF optimization_parameters.proto, LionParameters;
/// Chen et al. 2023, "Symbolic Discovery of Optimization Algorithms", algorithm 2.
class LionRule final : public Rule {
 public:
  std::string_view name() const noexcept override { return "lion"; }
  std::span<const RuleParameter> parameters() const noexcept override {
    static constexpr RuleParameter kParameters[] = {
        {.name = "beta1", .default_value = 0.9, .low = 0, .high = 1, .high_open = true},
        {.name = "beta2", .default_value = 0.99, .low = 0, .high = 1, .high_open = true},
        {.name = "use_non_lazy_lion", .default_value = 0, .choices = kFlag}};
    return kParameters;
  }
  double default_learning_rate() const noexcept override { return 0.001; }

  std::vector<RuleSlot> slots(const Optimizer&) const override { return {{.name = "momenta"}}; }

  bool steps_every_row(const Optimizer& optimizer) const noexcept override {
    return optimizer.parameter("use_non_lazy_lion") != 0;
  }

  void check(const Optimizer& optimizer) const override {
    if (steps_every_row(optimizer)) check_accumulation(optimizer, "use_non_lazy_lion");
  }

 protected:
  const RuleForms& forms(SimdLevel level, const Optimizer&) const noexcept override {
    return EMBERTABLE_AT_LEVEL(level, kForms);
  }
};

}  // namespace

const Rule& lion_rule() noexcept {
  static const LionRule rule;
  return rule;
}

}  // namespace embertable
