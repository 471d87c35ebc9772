#ifndef EMBERTABLE_LEVEL

/// A row of zeros does not move. Defaults and source: FBGEMM 1.9, LAMB; You et al. 2020, "Large
/// Batch Optimization for Deep Learning", algorithm 2.
constexpr RuleSpec lamb = {
    .name = "lamb",
    .default_learning_rate = 0.01,
    .parameters =
        {{.name = "beta1", .default_value = 0.9, .low = 0, .high = 1, .high_open = true},
         {.name = "beta2", .default_value = 0.999, .low = 0, .high = 1, .high_open = true},
         {.name = "epsilon", .default_value = 1e-8, .low = 0, .low_open = true},
         {.name = "weight_decay", .default_value = 0, .low = 0}},
    .slots = {{.name = "momenta"}, {.name = "velocities"}},
    .keeps_rows_of_zeros = true,
    .has_own_decay = true,
    .prepare =
        [](const StepInputs& inputs, StepScalars& step) noexcept {
          const BiasCorrection correction(step.value[0], step.value[1], inputs.step);
          step.value[4] = correction.rate(1);
          step.value[5] = correction.epsilon(step.value[2]);
        },
    .forms = EMBERTABLE_FORMS(Lamb),
};

#else

/// m = beta1*m + (1-beta1)*g; v = beta2*v + (1-beta2)*g*g; x = alpha*m / (sqrt(v) + e) +
/// weight_decay*w, where alpha and e hold the correction for t steps; w = w - lr*norm(w)/norm(x)*x.
/// No step where norm(x) is 0.
struct Lamb : Formula {
  static constexpr int kSlots = 2, kRounds = 1, kSums = 2, kValues = 2;
  MovingAverage first, second;
  F16 rate, decay, alpha, epsilon;
  bool decays;

  Lamb(const StepScalars& step, std::int32_t)
      : first(step.value[0]),
        second(step.value[1]),
        rate(set1(step.learning_rate)),
        decay(set1(step.value[3])),
        alpha(set1(step.value[4])),
        epsilon(set1(step.value[5])),
        decays(step.value[3] != 0) {}

  EMBERTABLE_INLINE F16 direction(F16 w, F16 m, F16 v) const {
    const F16 x = alpha * m / (sqrt(v) + epsilon);
    return decays ? x + decay * w : x;
  }

  template <int>
  EMBERTABLE_INLINE void terms(F16* term, F16 w, const F16* slot, F16 g, const F16*) const {
    const F16 x = direction(w, first.next(slot[0], g), second.next_of_square(slot[1], g));
    term[0] = w * w;
    term[1] = x * x;
  }
  template <int>
  EMBERTABLE_INLINE void row(const F16* sum, F16*, F16* value) const {
    value[0] = rate * (sqrt(sum[0]) / sqrt(sum[1]));
    value[1] = sum[1];
  }
  EMBERTABLE_INLINE void element(F16& w, F16* slot, F16 g, const F16* value) const {
    slot[0] = first.next(slot[0], g);
    slot[1] = second.next_of_square(slot[1], g);
    const F16 x = direction(w, slot[0], slot[1]);
    w = select(equal(value[1], zero16()), w, w - value[0] * x);
  }
};

#endif
