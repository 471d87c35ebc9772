#include "kernels/power.inl"
#include "optimizer/formula.inl"

/// a = a + g*g, or beta2*a + ((1-beta2)*g)*g unless beta2 = 1; q = g / (a+epsilon)^(1/exponent);
/// m = momentum*m + q; u = m, or momentum*m + q with Nesterov's; w = w - lr*u.
struct AdagradMomentum : Formula {
  static constexpr int kSlots = 2;
  Power power;
  F16 rate, momentum, beta2, rest, epsilon;
  bool nesterov, decays;

  AdagradMomentum(const StepScalars& step, std::int32_t)
      : power(1 / step.value[2]),
        rate(set1(step.learning_rate)),
        momentum(set1(step.value[0])),
        beta2(set1(step.value[3])),
        rest(set1(1 - step.value[3])),
        epsilon(set1(step.value[4])),
        nesterov(step.value[1] != 0),
        decays(step.value[3] != 1) {}

  EMBERTABLE_INLINE void element(F16& w, F16* slot, F16 g, const F16*) const {
    slot[0] = decays ? beta2 * slot[0] + rest * g * g : slot[0] + g * g;
    const F16 q = g / power(slot[0] + epsilon);
    slot[1] = momentum * slot[1] + q;
    const F16 u = nesterov ? momentum * slot[1] + q : slot[1];
    w = w - rate * u;
  }
};
constexpr RuleForms kForms = tile_form<AdagradMomentum>();
