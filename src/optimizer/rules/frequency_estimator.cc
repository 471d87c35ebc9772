#include <fmt/format.h>

#include "embertable/errors.h"
#include "optimizer/rule.h"

#define EMBERTABLE_LEVEL_BODY "optimizer/rules/frequency_estimator.inl"
#include "kernels/for_each_level.inl"

namespace embertable {
namespace {

/// The rate carries the global step; the table holds the estimated steps between two of its row and
/// should start at max_delta. Gradients are not read. `weight_exponent`, which maps an estimate d
/// to the weight (d/max_delta)^weight_exponent, is kept and reported; lookups give the estimate.
/// Source: TF tpu_embedding.py, FrequencyEstimatorParameters, and optimization_parameters.proto. No
/// defaults are published; here an estimate follows the last hundred or so gaps.
class FrequencyEstimatorRule final : public Rule {
 public:
  std::string_view name() const noexcept override { return "frequency_estimator"; }
  std::span<const RuleParameter> parameters() const noexcept override {
    static constexpr RuleParameter kParameters[] = {
        {.name = "tau",
         .default_value = 0.01,
         .low = 0,
         .high = 1,
         .low_open = true,
         .high_open = true},
        {.name = "max_delta", .default_value = 1e6, .low = 0, .low_open = true},
        {.name = "outlier_threshold", .default_value = 100, .low = 0},
        {.name = "weight_exponent", .default_value = 1}};
    return kParameters;
  }
  double default_learning_rate() const noexcept override { return 1; }

  std::vector<RuleSlot> slots(const Optimizer&) const override {
    return {{.name = "last_hit_step"}};
  }

  void check_dim(std::int32_t dim) const override {
    if (dim != 1) throw ValueError(fmt::format("frequency_estimator: dim must be 1, got {}", dim));
  }

 protected:
  const RuleForms& forms(SimdLevel level, const Optimizer&) const noexcept override {
    return EMBERTABLE_AT_LEVEL(level, kForms);
  }
};

}  // namespace

const Rule& frequency_estimator_rule() noexcept {
  static const FrequencyEstimatorRule rule;
  return rule;
}

}  // namespace embertable
