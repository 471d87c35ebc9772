#include "optimizer/rule.h"

#define EMBERTABLE_LEVEL_BODY "optimizer/rules/lars_sgd.inl"
#include "kernels/for_each_level.inl"

namespace embertable {
namespace {

/// Defaults and source: FBGEMM 1.9, LARS_SGD; You et al. 2017, "Large Batch Training of
/// Convolutional Networks", algorithm 1. A row of zeros does not move.
class LarsSgdRule final : public Rule {
 public:
  std::string_view name() const noexcept override { return "lars_sgd"; }
  std::span<const RuleParameter> parameters() const noexcept override {
    static constexpr RuleParameter kParameters[] = {
        {.name = "momentum", .default_value = 0.9, .low = 0, .high = 1, .high_open = true},
        {.name = "eta", .default_value = 0.001, .low = 0},
        {.name = "weight_decay", .default_value = 0, .low = 0}};
    return kParameters;
  }
  double default_learning_rate() const noexcept override { return 0.01; }

  std::vector<RuleSlot> slots(const Optimizer&) const override { return {{.name = "momenta"}}; }

  bool keeps_rows_of_zeros() const noexcept override { return true; }

  void check(const Optimizer& optimizer) const override { check_no_common_decay(optimizer); }

 protected:
  const RuleForms& forms(SimdLevel level, const Optimizer&) const noexcept override {
    return EMBERTABLE_AT_LEVEL(level, kForms);
  }
};

}  // namespace

const Rule& lars_sgd_rule() noexcept {
  static const LarsSgdRule rule;
  return rule;
}

}  // namespace embertable
