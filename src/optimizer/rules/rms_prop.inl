#include "optimizer/formula.inl"
#include "optimizer/moving_average.inl"

/// ms = rho*ms + (1-rho)*g*g; mom = momentum*mom + lr*g / sqrt(ms + epsilon); w = w - mom.
struct RmsProp : Formula {
  static constexpr int kSlots = 2;
  MovingAverage square;
  F16 rate, momentum, epsilon;

  RmsProp(const StepScalars& step, std::int32_t)
      : square(step.value[0]),
        rate(set1(step.learning_rate)),
        momentum(set1(step.value[1])),
        epsilon(set1(step.value[2])) {}

  EMBERTABLE_INLINE void element(F16& w, F16* slot, F16 g, const F16*) const {
    slot[0] = square.next_of_square(slot[0], g);
    slot[1] = momentum * slot[1] + rate * g / sqrt(slot[0] + epsilon);
    w = w - slot[1];
  }
};
constexpr RuleForms kForms = tile_form<RmsProp>();
