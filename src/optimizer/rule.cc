#include "optimizer/rule.h"

#include <cmath>

#include "base/assert.h"

namespace embertable {

bool RuleParameter::contains(double value) const noexcept {
  return std::isfinite(value) && (low_open ? value > low : value >= low) &&
         (high_open ? value < high : value <= high);
}

RuleSlot Rule::slot(std::int32_t, const Optimizer&) const {
  EMBERTABLE_ASSERT(!"a rule without slots was asked for one");
  return {};
}

StepScalars Rule::begin_step(const Optimizer&, float learning_rate, std::int64_t) const noexcept {
  return {.learning_rate = learning_rate};
}

UpdateRows Rule::update_rows(SimdLevel level) const noexcept { return forms(level).rows; }

UpdateGroups<std::uint32_t> Rule::update_groups(SimdLevel level, std::int32_t dim) const noexcept {
  for (std::size_t i = 0; i < std::size(kFusedDims); ++i) {
    if (kFusedDims[i] == dim) return forms(level).groups[i];
  }
  return nullptr;
}

}  // namespace embertable
