#include "optimizer/rule.h"

#define EMBERTABLE_LEVEL_BODY "optimizer/rules/adagrad_momentum.inl"
#include "kernels/for_each_level.inl"

namespace embertable {
namespace {

/// Source: TF tpu_embedding_v2_utils.py, AdagradMomentum; the update as in the SparseCore kernels.
class AdagradMomentumRule final : public Rule {
 public:
  std::string_view name() const noexcept override { return "adagrad_momentum"; }
  std::span<const RuleParameter> parameters() const noexcept override {
    static constexpr RuleParameter kParameters[] = {
        {.name = "momentum", .low = 0},
        {.name = "use_nesterov", .choices = kFlag},
        {.name = "exponent", .default_value = 2, .low = 0, .low_open = true},
        {.name = "beta2", .default_value = 1, .low = 0, .high = 1},
        {.name = "epsilon", .default_value = 1e-10, .low = 0, .low_open = true}};
    return kParameters;
  }
  double default_learning_rate() const noexcept override { return 0.001; }

  std::vector<RuleSlot> slots(const Optimizer&) const override {
    return {{.name = "accumulators"}, {.name = "momenta"}};
  }

 protected:
  const RuleForms& forms(SimdLevel level, const Optimizer&) const noexcept override {
    return EMBERTABLE_AT_LEVEL(level, kForms);
  }
};

}  // namespace

const Rule& adagrad_momentum_rule() noexcept {
  static const AdagradMomentumRule rule;
  return rule;
}

}  // namespace embertable
