#ifndef EMBERTABLE_LEVEL

/// Adam with bias correction, and with a decay that is not part of the gradient. With
/// use_rowwise_bias_correction the correction counts the updates of the row, up to 2^24, instead of
/// the steps of the table. The defaults are those of FBGEMM 1.9. Source: torch AdamW; FBGEMM 1.9,
/// ADAM and its use_rowwise_bias_correction.
constexpr RuleSpec adamw = {
    .name = "adamw",
    .default_learning_rate = 0.01,
    .parameters =
        {{.name = "beta1", .default_value = 0.9, .low = 0, .high = 1, .high_open = true},
         {.name = "beta2", .default_value = 0.999, .low = 0, .high = 1, .high_open = true},
         {.name = "epsilon", .default_value = 1e-8, .low = 0, .low_open = true},
         {.name = "weight_decay", .default_value = 0, .low = 0},
         {.name = "use_rowwise_bias_correction", .default_value = 0, .choices = kFlag}},
    .slots = {{.name = "momenta"},
              {.name = "velocities"},
              {.name = "row_counters",
               .row_wise = true,
               .only_with = "use_rowwise_bias_correction"}},
    .has_own_decay = true,
    .prepare =
        [](const StepInputs& inputs, StepScalars& step) noexcept {
          const BiasCorrection correction(step.value[0], step.value[1], inputs.step);
          step.value[5] = correction.rate(inputs.learning_rate);
          step.value[6] = correction.epsilon(step.value[2]);
          step.value[7] = kept(inputs.learning_rate, step.value[3]);
        },
    .forms = EMBERTABLE_FORMS(AdamW),
    .other_formula = {.parameter = "use_rowwise_bias_correction",
                      .forms = EMBERTABLE_FORMS(CountingAdamW)},
};

#else

/// m = beta1*m + (1-beta1)*g; v = beta2*v + (1-beta2)*g*g; w = keep*w - alpha*m / (sqrt(v) + e),
/// where alpha and e hold the correction for t steps of the table.
struct AdamW : Formula {
  static constexpr int kSlots = 2;
  MovingAverage first, second;
  F16 alpha, epsilon, keep;

  AdamW(const StepScalars& step, std::int32_t)
      : first(step.value[0]),
        second(step.value[1]),
        alpha(set1(step.value[5])),
        epsilon(set1(step.value[6])),
        keep(set1(step.value[7])) {}

  EMBERTABLE_INLINE void element(F16& w, F16* slot, F16 g, const F16*) const {
    apply(w, slot, g, alpha, epsilon);
  }
  EMBERTABLE_INLINE void apply(F16& w, F16* slot, F16 g, F16 a, F16 e) const {
    slot[0] = first.next(slot[0], g);
    slot[1] = second.next_of_square(slot[1], g);
    w = keep * w - a * slot[0] / (sqrt(slot[1]) + e);
  }
};

/// The same with the correction for t updates of the row, which its third slot counts.
struct CountingAdamW : AdamW {
  static constexpr int kSlots = 3, kRounds = 1, kValues = 2;
  static constexpr bool row_wise(int slot) { return slot == 2; }
  float beta1, beta2, rate, uncorrected_epsilon;

  CountingAdamW(const StepScalars& step, std::int32_t dim)
      : AdamW(step, dim),
        beta1(step.value[0]),
        beta2(step.value[1]),
        rate(step.learning_rate),
        uncorrected_epsilon(step.value[2]) {}

  template <int>
  EMBERTABLE_INLINE void row(const F16*, F16* slot, F16* value) const {
    slot[2] = slot[2] + set1(1);
    float count[16], alphas[16], epsilons[16];
    store(count, slot[2]);
    for (int r = 0; r < 16; ++r) {
      const BiasCorrection correction(beta1, beta2, updates(count[r]));
      alphas[r] = correction.rate(rate);
      epsilons[r] = correction.epsilon(uncorrected_epsilon);
    }
    value[0] = load(alphas);
    value[1] = load(epsilons);
  }
  EMBERTABLE_INLINE void element(F16& w, F16* slot, F16 g, const F16* value) const {
    apply(w, slot, g, value[0], value[1]);
  }

  /// A count that is no number from 1 to 2^24, which only a caller's own slot can hold, is the
  /// nearest one.
  EMBERTABLE_INLINE static std::int64_t updates(float count) {
    return count >= 1 ? static_cast<std::int64_t>(count < 0x1p24f ? count : 0x1p24f) : 1;
  }
};

#endif
