#ifndef EMBERTABLE_LEVEL

/// The defaults are those of Keras RMSprop, which also adds epsilon inside the root. Source: TF
/// core kernels, ApplyCenteredRMSProp.
constexpr RuleSpec centered_rms_prop = {
    .name = "centered_rms_prop",
    .default_learning_rate = 0.001,
    .parameters = {{.name = "rho", .default_value = 0.9, .low = 0, .high = 1},
                   {.name = "momentum", .default_value = 0, .low = 0, .high = 1, .high_open = true},
                   {.name = "epsilon", .default_value = 1e-7, .low = 0, .low_open = true}},
    .slots = {{.name = "ms"}, {.name = "mom"}, {.name = "mg"}},
    .forms = EMBERTABLE_FORMS(CenteredRmsProp),
};

#else

/// ms = rho*ms + (1-rho)*g*g; mg = rho*mg + (1-rho)*g; mom = momentum*mom + lr*g / sqrt(ms - mg*mg
/// + epsilon); w = w - mom. A difference that rounding made negative counts as 0.
struct CenteredRmsProp : Formula {
  static constexpr int kSlots = 3;
  MovingAverage average;
  F16 rate, momentum, epsilon;

  CenteredRmsProp(const StepScalars& step, std::int32_t)
      : average(step.value[0]),
        rate(set1(step.learning_rate)),
        momentum(set1(step.value[1])),
        epsilon(set1(step.value[2])) {}

  EMBERTABLE_INLINE void element(F16& w, F16* slot, F16 g, const F16*) const {
    slot[0] = average.next_of_square(slot[0], g);
    slot[2] = average.next(slot[2], g);
    const F16 variance = at_least(slot[0] - slot[2] * slot[2], zero16());
    slot[1] = momentum * slot[1] + rate * g / sqrt(variance + epsilon);
    w = w - slot[1];
  }
};

#endif
