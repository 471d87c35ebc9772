#ifndef EMBERTABLE_LEVEL

/// Source: TF tpu_embedding_v2_utils.py, AdagradMomentum; the update as in the SparseCore kernels.
constexpr RuleSpec adagrad_momentum = {
    .name = "adagrad_momentum",
    .default_learning_rate = 0.001,
    .parameters = {{.name = "momentum", .low = 0},
                   {.name = "use_nesterov", .choices = kFlag},
                   {.name = "exponent", .default_value = 2, .low = 0, .low_open = true},
                   {.name = "beta2", .default_value = 1, .low = 0, .high = 1},
                   {.name = "epsilon", .default_value = 1e-10, .low = 0, .low_open = true}},
    .slots = {{.name = "accumulators"}, {.name = "momenta"}},
    .forms = EMBERTABLE_FORMS(AdagradMomentum),
};

#else

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

#endif
