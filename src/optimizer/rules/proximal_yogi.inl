#include "optimizer/formula.inl"

/// m = beta1*m + (1-beta1)*g; q = g*g; v = v + ((1-beta2)*sgn(q-v))*q; e = lr / (sqrt(v)+epsilon);
/// x = w - e*m, brought e*l1 nearer to 0; w = x / (1 + l2*e).
struct ProximalYogi : Formula {
  static constexpr int kSlots = 2;
  F16 rate, beta1, rest1, rest2, epsilon, l1, l2;
  bool shrinks, divides;

  ProximalYogi(const StepScalars& step, std::int32_t)
      : rate(set1(step.learning_rate)),
        beta1(set1(step.value[0])),
        rest1(set1(1 - step.value[0])),
        rest2(set1(1 - step.value[1])),
        epsilon(set1(step.value[2])),
        l1(set1(step.value[3])),
        l2(set1(step.value[4])),
        shrinks(step.value[3] > 0),
        divides(step.value[3] > 0 || step.value[4] > 0) {}

  EMBERTABLE_INLINE void element(F16& w, F16* slot, F16 g, const F16*) const {
    slot[1] = beta1 * slot[1] + rest1 * g;
    const F16 q = g * g;
    slot[0] = slot[0] + rest2 * sgn(q - slot[0]) * q;
    const F16 e = rate / (sqrt(slot[0]) + epsilon);
    w = w - e * slot[1];
    if (shrinks) w = copysign(at_least(abs(w) - l1 * e, zero16()), w);
    if (divides) w = w / (set1(1.0f) + l2 * e);
  }
};
constexpr RuleForms kForms = tile_form<ProximalYogi>();
