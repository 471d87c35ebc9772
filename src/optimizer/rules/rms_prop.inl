#ifndef EMBERTABLE_LEVEL

/// The defaults are those of Keras RMSprop, which also adds epsilon inside the root. Source: TF
/// core kernels, ApplyRMSProp.
constexpr RuleSpec rms_prop = {
    .name = "rms_prop",
    .default_learning_rate = 0.001,
    .parameters = {{.name = "rho", .default_value = 0.9, .low = 0, .high = 1},
                   {.name = "momentum", .default_value = 0, .low = 0, .high = 1, .high_open = true},
                   {.name = "epsilon", .default_value = 1e-7, .low = 0, .low_open = true}},
    .slots = {{.name = "ms"}, {.name = "mom"}},
    .forms = EMBERTABLE_FORMS(RmsProp),
};

#else

/// ms = rho*ms + (1-rho)*g*g; mom = momentum*mom + lr*g / sqrt(ms + epsilon); w = w - mom.
struct RmsProp : Formula {
  static constexpr int kSlots = 2;
  MovingAverage square;
  F16 rate, momentum, epsilon;

  RmsProp(const StepScalars& step, std::int32_t)
      : square(step.value[0]),
        rate(set1(step.learning_rate)),
        momentum(set1(step.value[1])),
        epsilon(set1(step.value[2])) {}

  EMBERTABLE_INLINE void element(F16& w, F16* slot, F16 g, const F16*) const {
    slot[0] = square.next_of_square(slot[0], g);
    slot[1] = momentum * slot[1] + rate * g / sqrt(slot[0] + epsilon);
    w = w - slot[1];
  }
};

#endif
