#ifndef EMBERTABLE_LEVEL

/// The quotient and the rate are as in the SparseCore kernel. No defaults are published: here the
/// scale is the root of the quotient, at most 100, and nothing decays. Source: TF
/// optimization_parameters.proto, FrequencyAwareAdagradParameters.
constexpr RuleSpec frequency_aware_adagrad = {
    .name = "frequency_aware_adagrad",
    .default_learning_rate = 0.001,
    .parameters =
        {{.name = "l1_regularization_strength", .low = 0},
         {.name = "l2_regularization_strength", .low = 0},
         {.name = "max_lr_multiplier", .default_value = 100, .low = 0, .low_open = true},
         {.name = "probability_exponent", .default_value = 0.5, .low = 0},
         {.name = "accumulator_decay", .default_value = 1, .low = 0, .high = 1},
         {.name = "initial_accumulator_value", .default_value = 0.1, .low = 0, .low_open = true}},
    .slots = {{.name = "accumulators", .initial_value = "initial_accumulator_value"},
              {.name = "counters"}},
    .counts_steps = true,
    .prepare =
        [](const StepInputs& inputs, StepScalars& step) noexcept {
          step.value[6] = inputs.step_counter < 1 ? 1 : inputs.step_counter;
        },
    .forms = EMBERTABLE_FORMS(FrequencyAwareAdagrad),
};

#else

/// c = c + 1; a = decay*a + g*g, at least initial_accumulator_value; s = (steps/c)^exponent, at
/// most max_lr_multiplier; u = (g*s) / sqrt(a) + l1*sgn(w) + l2*w; w = w - lr*u. The steps are at
/// least 1.
struct FrequencyAwareAdagrad : Formula {
  static constexpr int kSlots = 2;
  Power power;
  F16 rate, l1, l2, most, decay, floor, steps;
  bool has_l1, has_l2;

  FrequencyAwareAdagrad(const StepScalars& step, std::int32_t)
      : power(step.value[3]),
        rate(set1(step.learning_rate)),
        l1(set1(step.value[0])),
        l2(set1(step.value[1])),
        most(set1(step.value[2])),
        decay(set1(step.value[4])),
        floor(set1(step.value[5])),
        steps(set1(step.value[6])),
        has_l1(step.value[0] > 0),
        has_l2(step.value[1] > 0) {}

  EMBERTABLE_INLINE void element(F16& w, F16* slot, F16 g, const F16*) const {
    slot[0] = at_least(decay * slot[0] + g * g, floor);
    slot[1] = slot[1] + set1(1.0f);
    const F16 s = at_most(power(steps / slot[1]), most);
    F16 u = g * s / sqrt(slot[0]);
    if (has_l1) u = u + l1 * sgn(w);
    if (has_l2) u = u + l2 * w;
    w = w - rate * u;
  }
};

#endif
