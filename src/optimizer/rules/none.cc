#include <fmt/format.h>

#include "embertable/errors.h"
#include "optimizer/gradient_sums.h"
#include "optimizer/rule.h"

namespace embertable {
namespace {

void hand_on(const RowTile& tile, const StepScalars& step) noexcept {
  if (step.context != nullptr) static_cast<GradientSums*>(step.context)->add(tile);
}

/// Rows stay as they are; the caller receives their ids and summed gradients. Source: FBGEMM 1.9,
/// OptimType.NONE.
class NoneRule final : public Rule {
 public:
  std::string_view name() const noexcept override { return "none"; }
  double default_learning_rate() const noexcept override { return 0; }
  bool gives_sums() const noexcept override { return true; }

  void check(const Optimizer& optimizer) const override {
    const OptimizerOptions& options = optimizer.options();
    if (!options.use_gradient_accumulation)
      throw ValueError("none: use_gradient_accumulation must be true, got false");
    if (options.clip_gradient_min || options.clip_gradient_max || options.clip_weight_min ||
        options.clip_weight_max || options.weight_decay_factor != 0) {
      throw ValueError(
          fmt::format("none: limits and weight_decay_factor must be unset where no row changes, "
                      "got {}",
                      optimizer.to_string()));
    }
  }

 protected:
  const RuleForms& forms(SimdLevel, const Optimizer&) const noexcept override {
    static constexpr RuleForms kForms = {hand_on, hand_on, {}};
    return kForms;
  }
};

}  // namespace

const Rule& none_rule() noexcept {
  static const NoneRule rule;
  return rule;
}

}  // namespace embertable
