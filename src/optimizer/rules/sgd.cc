#include "optimizer/rule.h"

#define EMBERTABLE_LEVEL_BODY "optimizer/rules/sgd.inl"
#include "kernels/for_each_level.inl"

namespace embertable {
namespace {

/// Source: TF tpu_embedding_v2_utils.py, SGD.
class SgdRule final : public Rule {
 public:
  std::string_view name() const noexcept override { return "sgd"; }
  double default_learning_rate() const noexcept override { return 0.01; }

 protected:
  const RuleForms& forms(SimdLevel level, const Optimizer&) const noexcept override {
    return EMBERTABLE_AT_LEVEL(level, kForms);
  }
};

}  // namespace

const Rule& sgd_rule() noexcept {
  static const SgdRule rule;
  return rule;
}

}  // namespace embertable
