#include "optimizer/formula.inl"
#include "optimizer/moving_average.inl"

/// w = w - lr*sign(beta1*m + (1-beta1)*g); m = beta2*m + (1-beta2)*g.
struct Lion : Formula {
  static constexpr int kSlots = 1;
  MovingAverage direction, momentum;
  F16 rate;

  Lion(const StepScalars& step, std::int32_t)
      : direction(step.value[0]), momentum(step.value[1]), rate(set1(step.learning_rate)) {}

  EMBERTABLE_INLINE void element(F16& w, F16* slot, F16 g, const F16*) const {
    w = w - rate * sgn(direction.next(slot[0], g));
    slot[0] = momentum.next(slot[0], g);
  }
};
constexpr RuleForms kForms = tile_form<Lion>();
