#include "optimizer/rule.h"

#define EMBERTABLE_LEVEL_BODY "optimizer/rules/assign.inl"
#include "kernels/for_each_level.inl"

namespace embertable {
namespace {

/// The rate has no part in it. Source: TF optimization_parameters.proto, AssignParameters.
class AssignRule final : public Rule {
 public:
  std::string_view name() const noexcept override { return "assign"; }
  double default_learning_rate() const noexcept override { return 0; }

 protected:
  const RuleForms& forms(SimdLevel level, const Optimizer&) const noexcept override {
    return EMBERTABLE_AT_LEVEL(level, kForms);
  }
};

}  // namespace

const Rule& assign_rule() noexcept {
  static const AssignRule rule;
  return rule;
}

}  // namespace embertable
