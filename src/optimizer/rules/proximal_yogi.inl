#ifndef EMBERTABLE_LEVEL

/// The rate comes with its correction for bias. Source: TF tpu_embedding.py,
/// ProximalYogiParameters; TF Addons, Yogi.
constexpr RuleSpec proximal_yogi = {
    .name = "proximal_yogi",
    .default_learning_rate = 0.01,
    .parameters =
        {{.name = "beta1", .default_value = 0.9, .low = 0, .high = 1, .high_open = true},
         {.name = "beta2", .default_value = 0.999, .low = 0, .high = 1, .high_open = true},
         {.name = "epsilon", .default_value = 1e-3, .low = 0, .low_open = true},
         {.name = "l1", .low = 0},
         {.name = "l2", .low = 0},
         {.name = "initial_accumulator_value", .default_value = 1e-6, .low = 0}},
    .slots = {{.name = "v", .initial_value = "initial_accumulator_value"}, {.name = "m"}},
    .forms = EMBERTABLE_FORMS(ProximalYogi),
};

#else

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

#endif
