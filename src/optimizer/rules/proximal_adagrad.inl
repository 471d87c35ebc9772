#ifndef EMBERTABLE_LEVEL

/// Source: TF tpu_embedding.py, ProximalAdagradParameters; core kernels ApplyProximalAdagrad.
constexpr RuleSpec proximal_adagrad = {
    .name = "proximal_adagrad",
    .default_learning_rate = 0.001,
    .parameters =
        {{.name = "initial_accumulator_value", .default_value = 0.1, .low = 0, .low_open = true},
         {.name = "l1", .low = 0},
         {.name = "l2", .low = 0}},
    .slots = {{.name = "accumulators", .initial_value = "initial_accumulator_value"}},
    .forms = EMBERTABLE_FORMS(ProximalAdagrad),
};

#else

/// a = a + g*g; e = lr / sqrt(a); x = w - e*g, brought e*l1 nearer to 0; w = x / (1 + l2*e).
struct ProximalAdagrad : Formula {
  static constexpr int kSlots = 1;
  F16 rate, l1, l2;
  bool shrinks;

  ProximalAdagrad(const StepScalars& step, std::int32_t)
      : rate(set1(step.learning_rate)),
        l1(set1(step.value[1])),
        l2(set1(step.value[2])),
        shrinks(step.value[1] > 0) {}

  EMBERTABLE_INLINE void element(F16& w, F16* slot, F16 g, const F16*) const {
    slot[0] = slot[0] + g * g;
    const F16 e = rate / sqrt(slot[0]);
    F16 x = w - e * g;
    if (shrinks) x = copysign(at_least(abs(x) - e * l1, zero16()), x);
    w = x / (set1(1.0f) + l2 * e);
  }
};

#endif
