#include "optimizer/formula.inl"

/// a = a + g*g; w = w - lr*g / sqrt(a). 0/0 counts as 0.
struct Adagrad : Formula {
  static constexpr int kSlots = 1;
  F16 rate;

  Adagrad(const StepScalars& step, std::int32_t) : rate(set1(step.learning_rate)) {}

  EMBERTABLE_INLINE void element(F16& w, F16* slot, F16 g, const F16*) const {
    slot[0] = slot[0] + g * g;
    w = w - quotient(rate * g, sqrt(slot[0]));
  }
};
constexpr RuleForms kForms = fused_forms<Adagrad>();
