#ifndef EMBERTABLE_LEVEL

/// FTRL with the second moment of Yogi (Zaheer et al. 2018, algorithm 2), whose beta2 is the
/// default here. Source: TF optimization_parameters.proto, OnlineYogiParameters.
constexpr RuleSpec online_yogi = {
    .name = "online_yogi",
    .default_learning_rate = 0.001,
    .parameters =
        {{.name = "l1", .low = 0},
         {.name = "l2", .low = 0},
         {.name = "beta2", .default_value = 0.999, .low = 0, .high = 1, .high_open = true},
         {.name = "initial_accumulator_value", .default_value = 0.1, .low = 0, .low_open = true}},
    .slots = {{.name = "vs", .initial_value = "initial_accumulator_value"}, {.name = "linears"}},
    .forms = EMBERTABLE_FORMS(OnlineYogi),
};

#else

/// q = g*g; V = v + ((1-beta2)*sign(q-v))*q, where the sign of +0 is +1; z = (z+g) -
/// ((sqrt(V)-sqrt(v))/lr)*w; w = (z clamped to [-l1, l1] - z) / (sqrt(V)/lr + 2*l2); 0 by anything
/// is 0.
struct OnlineYogi : Formula {
  static constexpr int kSlots = 2;
  F16 rate, low, high, l2, rest;

  OnlineYogi(const StepScalars& step, std::int32_t)
      : rate(set1(step.learning_rate)),
        low(set1(-step.value[0])),
        high(set1(step.value[0])),
        l2(set1(2 * step.value[1])),
        rest(set1(1 - step.value[2])) {}

  EMBERTABLE_INLINE void element(F16& w, F16* slot, F16 g, const F16*) const {
    const F16 q = g * g;
    const F16 v = slot[0] + rest * copysign(set1(1.0f), q - slot[0]) * q;
    const F16 root = sqrt(v);
    const F16 z = (slot[1] + g) - (root - sqrt(slot[0])) / rate * w;
    w = quotient(at_most(at_least(z, low), high) - z, root / rate + l2);
    slot[0] = v;
    slot[1] = z;
  }
};

#endif
