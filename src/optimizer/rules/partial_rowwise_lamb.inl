#ifndef EMBERTABLE_LEVEL

/// LAMB with one velocity for each row, of the mean of squares. A row of zeros does not move.
/// Defaults and source: FBGEMM 1.9, PARTIAL_ROWWISE_LAMB.
constexpr RuleSpec partial_rowwise_lamb = {
    .name = "partial_rowwise_lamb",
    .default_learning_rate = 0.01,
    .parameters =
        {{.name = "beta1", .default_value = 0.9, .low = 0, .high = 1, .high_open = true},
         {.name = "beta2", .default_value = 0.999, .low = 0, .high = 1, .high_open = true},
         {.name = "epsilon", .default_value = 1e-8, .low = 0, .low_open = true},
         {.name = "weight_decay", .default_value = 0, .low = 0}},
    .slots = {{.name = "momenta"}, {.name = "velocities", .row_wise = true}},
    .keeps_rows_of_zeros = true,
    .has_own_decay = true,
    .prepare =
        [](const StepInputs& inputs, StepScalars& step) noexcept {
          const BiasCorrection correction(step.value[0], step.value[1], inputs.step);
          step.value[4] = correction.rate(1);
          step.value[5] = correction.epsilon(step.value[2]);
        },
    .forms = EMBERTABLE_FORMS(PartialRowwiseLamb),
};

#else

/// m = beta1*m + (1-beta1)*g; v = beta2*v + (1-beta2)*mean(g*g); x = alpha*m / (sqrt(v) + e) +
/// weight_decay*w, where alpha and e hold the correction for t steps; w = w -
/// lr*norm(w)/norm(x)*x. No step where norm(x) is 0.
struct PartialRowwiseLamb : Formula {
  static constexpr int kSlots = 2, kRounds = 2, kSums = 2, kValues = 3;
  static constexpr bool row_wise(int slot) { return slot == 1; }
  MovingAverage first, second;
  F16 rate, decay, alpha, epsilon, dim;
  bool decays;

  PartialRowwiseLamb(const StepScalars& step, std::int32_t columns)
      : first(step.value[0]),
        second(step.value[1]),
        rate(set1(step.learning_rate)),
        decay(set1(step.value[3])),
        alpha(set1(step.value[4])),
        epsilon(set1(step.value[5])),
        dim(set1(static_cast<float>(columns))),
        decays(step.value[3] != 0) {}

  EMBERTABLE_INLINE F16 direction(F16 w, F16 m, F16 root) const {
    const F16 x = alpha * m / root;
    return decays ? x + decay * w : x;
  }

  /// Sums in a first round what velocities and the norm of w need, then the norm of x.
  template <int kRound>
  EMBERTABLE_INLINE void terms(F16* term, F16 w, const F16* slot, F16 g, const F16* value) const {
    if constexpr (kRound == 0) {
      term[0] = g * g;
      term[1] = w * w;
    } else {
      const F16 x = direction(w, first.next(slot[0], g), value[0]);
      term[0] = x * x;
      term[1] = zero16();
    }
  }
  template <int kRound>
  EMBERTABLE_INLINE void row(const F16* sum, F16* slot, F16* value) const {
    if constexpr (kRound == 0) {
      slot[1] = second.next(slot[1], sum[0] / dim);
      value[0] = sqrt(slot[1]) + epsilon;
      value[1] = sqrt(sum[1]);
      value[2] = zero16();
    } else {
      value[1] = rate * (value[1] / sqrt(sum[0]));
      value[2] = sum[0];
    }
  }
  EMBERTABLE_INLINE void element(F16& w, F16* slot, F16 g, const F16* value) const {
    slot[0] = first.next(slot[0], g);
    const F16 x = direction(w, slot[0], value[0]);
    w = select(equal(value[2], zero16()), w, w - value[1] * x);
  }
};

#endif
