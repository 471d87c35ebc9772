#include "optimizer/rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/assert.h"
#include "base/float_environment.h"
#include "embertable/errors.h"

namespace embertable {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

float limit(const std::optional<double>& value, float none) {
  return value ? static_cast<float>(*value) : none;
}

bool is_limited(const OptimizerOptions& options) {
  return options.clip_gradient_min || options.clip_gradient_max || options.clip_weight_min ||
         options.clip_weight_max || static_cast<float>(options.weight_decay_factor) != 0;
}

/// Returns the elements before the first that has no name.
template <class Named, std::size_t kMost>
std::span<const Named> named(const Named (&all)[kMost]) {
  return {all, std::ranges::find(all, std::string_view(), &Named::name)};
}

}  // namespace

bool RuleParameter::contains(double value) const noexcept {
  if (is_choice()) {
    return value >= 0 && value < static_cast<double>(choices.size()) && std::trunc(value) == value;
  }
  return std::isfinite(value) && (low_open ? value > low : value >= low) &&
         (high_open ? value < high : value <= high);
}

std::span<const RuleParameter> Rule::parameters() const noexcept { return named(spec_.parameters); }

std::vector<RuleSlot> Rule::slots(const Optimizer& optimizer) const {
  const auto parameter = [&](std::string_view name, double otherwise) {
    return name.empty() ? otherwise : optimizer.parameter(name);
  };
  std::vector<RuleSlot> slots;
  for (const SlotSpec& slot : named(spec_.slots)) {
    if (parameter(slot.only_with, 1) == 0) continue;
    slots.push_back({.name = slot.name,
                     .row_wise = slot.row_wise,
                     .initial_value = static_cast<float>(parameter(slot.initial_value, 0))});
  }
  return slots;
}

bool Rule::steps_every_row(const Optimizer& optimizer) const noexcept {
  const auto& [parameter, value] = spec_.steps_every_row;
  return !parameter.empty() && (optimizer.parameter(parameter) != 0) == value;
}

void Rule::check(const Optimizer& optimizer) const {
  const OptimizerOptions& options = optimizer.options();
  if (steps_every_row(optimizer) && !options.use_gradient_accumulation) {
    const auto& [parameter, value] = spec_.steps_every_row;
    throw ValueError(
        fmt::format("{}: {} must be {} where use_gradient_accumulation is false, got {}", name(),
                    parameter, !value, value));
  }
  if (spec_.has_own_decay && options.weight_decay_factor != 0) {
    throw ValueError(fmt::format(
        "{}: weight_decay_factor must be 0, since weight_decay is the rule's own decay, got {}",
        name(), options.weight_decay_factor));
  }
  if (spec_.check != nullptr) spec_.check(optimizer);
}

void Rule::check_dim(std::int32_t dim) const {
  if (spec_.only_dim != 0 && dim != spec_.only_dim)
    throw ValueError(fmt::format("{}: dim must be {}, got {}", name(), spec_.only_dim, dim));
}

StepScalars Rule::scalars(const Optimizer& optimizer) const noexcept {
  const FloatEnvironment ours;  // the caller's may round doubles otherwise
  const OptimizerOptions& options = optimizer.options();
  StepScalars scalars;
  scalars.gradient_low = limit(options.clip_gradient_min, -kInfinity);
  scalars.gradient_high = limit(options.clip_gradient_max, kInfinity);
  scalars.row_low = limit(options.clip_weight_min, -kInfinity);
  scalars.row_high = limit(options.clip_weight_max, kInfinity);
  scalars.decay = static_cast<float>(options.weight_decay_factor);
  const Optimizer::Parameters& parameters = optimizer.parameters();
  EMBERTABLE_ASSERT(parameters.size() <= std::size(scalars.value));
  for (std::size_t i = 0; i < parameters.size(); ++i)
    scalars.value[i] = static_cast<float>(parameters[i].second);
  scalars.context = const_cast<CustomRule*>(optimizer.custom_rule().get());
  return scalars;
}

StepScalars Rule::begin_step(const Optimizer& optimizer, StepScalars scalars,
                             const StepInputs& inputs) const noexcept {
  scalars.learning_rate = inputs.learning_rate;
  scalars.step = inputs.step;
  if (optimizer.options().multiply_weight_decay_factor_by_learning_rate)
    scalars.decay = scalars.decay * inputs.learning_rate;
  if (spec_.prepare != nullptr) spec_.prepare(inputs, scalars);
  return scalars;
}

const RuleForms& Rule::forms(SimdLevel level, const Optimizer& optimizer) const noexcept {
  const auto& [parameter, other] = spec_.other_formula;
  const bool takes_other = !parameter.empty() && optimizer.parameter(parameter) != 0;
  return (takes_other ? other : spec_.forms)[static_cast<int>(level)];
}

UpdateRows Rule::update_rows(SimdLevel level, const Optimizer& optimizer) const noexcept {
  const RuleForms& all = forms(level, optimizer);
  return is_limited(optimizer.options()) ? all.limited_rows : all.rows;
}

UpdateGroups<std::uint32_t> Rule::update_groups(SimdLevel level, const Optimizer& optimizer,
                                                std::int64_t dim, RowType type) const noexcept {
  if (is_limited(optimizer.options())) return nullptr;
  if (dim < kFusedDims[0])
    return type == RowType::kFloat32 ? forms(level, optimizer).narrow_groups : nullptr;
  for (std::size_t i = 0; i < std::size(kFusedDims); ++i) {
    if (kFusedDims[i] == dim) return forms(level, optimizer).groups[i];
  }
  return nullptr;
}

}  // namespace embertable
