#include "optimizer/formula.inl"

/// m = momentum*m + g; w = w - lr*m, or w - (lr*g + lr*momentum*m).
struct Momentum : Formula {
  static constexpr int kSlots = 1;
  F16 rate, momentum, rate_momentum;
  bool nesterov;

  Momentum(const StepScalars& step, std::int32_t)
      : rate(set1(step.learning_rate)),
        momentum(set1(step.value[0])),
        rate_momentum(set1(step.learning_rate * step.value[0])),
        nesterov(step.value[1] != 0) {}

  EMBERTABLE_INLINE void element(F16& w, F16* slot, F16 g, const F16*) const {
    slot[0] = momentum * slot[0] + g;
    w = w - (nesterov ? rate * g + rate_momentum * slot[0] : rate * slot[0]);
  }
};
constexpr RuleForms kForms = tile_form<Momentum>();
