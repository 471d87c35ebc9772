#include "optimizer/rule.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "base/assert.h"
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

}  // namespace

bool RuleParameter::contains(double value) const noexcept {
  if (is_choice()) {
    return value >= 0 && value < static_cast<double>(choices.size()) && std::trunc(value) == value;
  }
  return std::isfinite(value) && (low_open ? value > low : value >= low) &&
         (high_open ? value < high : value <= high);
}

StepScalars Rule::begin_step(const Optimizer& optimizer, const StepInputs& inputs) const noexcept {
  const OptimizerOptions& options = optimizer.options();
  StepScalars step;
  step.learning_rate = inputs.learning_rate;
  step.step = inputs.step;
  step.gradient_low = limit(options.clip_gradient_min, -kInfinity);
  step.gradient_high = limit(options.clip_gradient_max, kInfinity);
  step.row_low = limit(options.clip_weight_min, -kInfinity);
  step.row_high = limit(options.clip_weight_max, kInfinity);
  step.decay = static_cast<float>(options.weight_decay_factor);
  if (options.multiply_weight_decay_factor_by_learning_rate)
    step.decay = step.decay * inputs.learning_rate;
  const Optimizer::Parameters& parameters = optimizer.parameters();
  EMBERTABLE_ASSERT(parameters.size() <= std::size(step.value));
  for (std::size_t i = 0; i < parameters.size(); ++i)
    step.value[i] = static_cast<float>(parameters[i].second);
  scalars(optimizer, inputs, step);
  return step;
}

UpdateRows Rule::update_rows(SimdLevel level, const Optimizer& optimizer) const noexcept {
  const RuleForms& all = forms(level, optimizer);
  return is_limited(optimizer.options()) ? all.limited_rows : all.rows;
}

UpdateGroups<std::uint32_t> Rule::update_groups(SimdLevel level, const Optimizer& optimizer,
                                                std::int32_t dim) const noexcept {
  if (is_limited(optimizer.options())) return nullptr;
  for (std::size_t i = 0; i < std::size(kFusedDims); ++i) {
    if (kFusedDims[i] == dim) return forms(level, optimizer).groups[i];
  }
  return nullptr;
}

void check_accumulation(const Optimizer& optimizer, std::string_view flag) {
  if (optimizer.options().use_gradient_accumulation) return;
  const bool value = optimizer.parameter(flag) != 0;
  throw ValueError(fmt::format("{}: {} must be {} where use_gradient_accumulation is false, got {}",
                               optimizer.rule(), flag, !value, value));
}

void check_no_common_decay(const Optimizer& optimizer) {
  const double factor = optimizer.options().weight_decay_factor;
  if (factor == 0) return;
  throw ValueError(
      fmt::format("{}: weight_decay_factor must be 0, since weight_decay is the rule's own decay, "
                  "got {}",
                  optimizer.rule(), factor));
}

}  // namespace embertable
