#include <fmt/format.h>

#include "embertable/errors.h"
#include "optimizer/rule.h"

#define EMBERTABLE_LEVEL_BODY "optimizer/rules/mdl_adagrad_light.inl"
#include "kernels/for_each_level.inl"

namespace embertable {
namespace {

/// Only what is left where nothing asks for MDL: its update is not public. The row is what slot
/// `weights` is after its step. Source: TF optimization_parameters.proto,
/// MdlAdagradLightParameters; power and accumulators by default as in Adagrad.
class MdlAdagradLightRule final : public Rule {
 public:
  std::string_view name() const noexcept override { return "mdl_adagrad_light"; }
  std::span<const RuleParameter> parameters() const noexcept override {
    static constexpr RuleParameter kParameters[] = {
        {.name = "l2"},
        {.name = "lr_power", .default_value = -0.5, .high = 0},
        {.name = "min_servable_mdl_benefit"},
        {.name = "mdl_mix_in_margin"},
        {.name = "mdl_benefit_rampup_coeff"},
        {.name = "mdl_min_weight"},
        {.name = "benefit_revisit_scale"},
        {.name = "max_event_benefit"},
        {.name = "max_total_benefit"},
        {.name = "mdl_hard_limit"},
        {.name = "hard_limit_min_benefit", .choices = kFlag},
        {.name = "mdl_regularize", .choices = kFlag},
        {.name = "initial_accumulator_value", .default_value = 0.1, .low = 0, .low_open = true}};
    return kParameters;
  }
  double default_learning_rate() const noexcept override { return 0.001; }

  std::vector<RuleSlot> slots(const Optimizer& optimizer) const override {
    return {{.name = "accumulators",
             .initial_value = static_cast<float>(optimizer.parameter("initial_accumulator_value"))},
            {.name = "weights"},
            {.name = "benefits"}};
  }

  void check(const Optimizer& optimizer) const override {
    if (optimizer.options().weight_decay_factor != 0) {
      throw ValueError(fmt::format("mdl_adagrad_light: weight_decay_factor must be 0, got {}",
                                   optimizer.options().weight_decay_factor));
    }
    for (std::size_t i = 0; i < parameters().size(); ++i) {
      const auto& [name, value] = optimizer.parameters()[i];
      if (value == 0 || name == "lr_power" || name == "initial_accumulator_value") continue;
      const RuleParameter& parameter = parameters()[i];
      throw NotImplemented(fmt::format(
          "mdl_adagrad_light: {} must be {}, got {}: the update by MDL benefits is not offered",
          name, parameter.is_choice() ? "false" : "0",
          parameter.is_choice() ? "true" : fmt::format("{}", value)));
    }
  }

 protected:
  const RuleForms& forms(SimdLevel level, const Optimizer&) const noexcept override {
    return EMBERTABLE_AT_LEVEL(level, kForms);
  }
};

}  // namespace

const Rule& mdl_adagrad_light_rule() noexcept {
  static const MdlAdagradLightRule rule;
  return rule;
}

}  // namespace embertable
