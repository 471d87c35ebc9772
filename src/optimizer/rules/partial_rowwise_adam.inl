#ifndef EMBERTABLE_LEVEL

/// AdamW with one velocity for each row, of the mean of squares. Defaults and source: FBGEMM 1.9,
/// PARTIAL_ROWWISE_ADAM.
constexpr RuleSpec partial_rowwise_adam = {
    .name = "partial_rowwise_adam",
    .default_learning_rate = 0.01,
    .parameters =
        {{.name = "beta1", .default_value = 0.9, .low = 0, .high = 1, .high_open = true},
         {.name = "beta2", .default_value = 0.999, .low = 0, .high = 1, .high_open = true},
         {.name = "epsilon", .default_value = 1e-8, .low = 0, .low_open = true},
         {.name = "weight_decay", .default_value = 0, .low = 0}},
    .slots = {{.name = "momenta"}, {.name = "velocities", .row_wise = true}},
    .has_own_decay = true,
    .prepare =
        [](const StepInputs& inputs, StepScalars& step) noexcept {
          const BiasCorrection correction(step.value[0], step.value[1], inputs.step);
          step.value[4] = correction.rate(inputs.learning_rate);
          step.value[5] = correction.epsilon(step.value[2]);
          step.value[6] = kept(inputs.learning_rate, step.value[3]);
        },
    .forms = EMBERTABLE_FORMS(PartialRowwiseAdam),
};

#else

/// m = beta1*m + (1-beta1)*g; v = beta2*v + (1-beta2)*mean(g*g); w = keep*w - alpha*m / (sqrt(v) +
/// e), where alpha and e hold the correction for t steps.
struct PartialRowwiseAdam : Formula {
  static constexpr int kSlots = 2, kRounds = 1, kSums = 1, kValues = 1;
  static constexpr bool row_wise(int slot) { return slot == 1; }
  MovingAverage first, second;
  F16 alpha, epsilon, keep, dim;

  PartialRowwiseAdam(const StepScalars& step, std::int32_t columns)
      : first(step.value[0]),
        second(step.value[1]),
        alpha(set1(step.value[4])),
        epsilon(set1(step.value[5])),
        keep(set1(step.value[6])),
        dim(set1(static_cast<float>(columns))) {}

  template <int>
  EMBERTABLE_INLINE void terms(F16* term, F16, const F16*, F16 g, const F16*) const {
    term[0] = g * g;
  }
  template <int>
  EMBERTABLE_INLINE void row(const F16* sum, F16* slot, F16* value) const {
    slot[1] = second.next(slot[1], sum[0] / dim);
    value[0] = sqrt(slot[1]) + epsilon;
  }
  EMBERTABLE_INLINE void element(F16& w, F16* slot, F16 g, const F16* value) const {
    slot[0] = first.next(slot[0], g);
    w = keep * w - alpha * slot[0] / value[0];
  }
};

#endif
