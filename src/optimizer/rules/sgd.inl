#include "optimizer/formula.inl"

/// w = w - lr*g.
struct Sgd : Formula {
  F16 rate;

  Sgd(const StepScalars& step, std::int32_t) : rate(set1(step.learning_rate)) {}

  EMBERTABLE_INLINE void element(F16& w, F16*, F16 g, const F16*) const { w = w - rate * g; }
};
constexpr RuleForms kForms = fused_forms<Sgd>();
