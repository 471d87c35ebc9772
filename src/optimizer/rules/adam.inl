#include "optimizer/formula.inl"
#include "optimizer/moving_average.inl"

/// m = beta_1*m + (1-beta_1)*g; v = beta_2*v + (1-beta_2)*g*g; w = w - lr*m / sqrt(v + epsilon^2),
/// or over sqrt(v) + epsilon.
struct Adam : Formula {
  static constexpr int kSlots = 2;
  MovingAverage first, second;
  F16 rate, epsilon;
  bool inside;

  Adam(const StepScalars& step, std::int32_t)
      : first(step.value[0]),
        second(step.value[1]),
        rate(set1(step.learning_rate)),
        epsilon(set1(step.value[4] != 0 ? step.value[2] * step.value[2] : step.value[2])),
        inside(step.value[4] != 0) {}

  EMBERTABLE_INLINE void element(F16& w, F16* slot, F16 g, const F16*) const {
    slot[0] = first.next(slot[0], g);
    slot[1] = second.next_of_square(slot[1], g);
    w = w - rate * slot[0] / (inside ? sqrt(slot[1] + epsilon) : sqrt(slot[1]) + epsilon);
  }
};
constexpr RuleForms kForms = tile_form<Adam>();
