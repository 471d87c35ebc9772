#ifndef EMBERTABLE_LEVEL

/// The defaults are those of optax lion and Keras Lion. Source: TF optimization_parameters.proto,
/// LionParameters; Chen et al. 2023, "Symbolic Discovery of Optimization Algorithms", algorithm 2.
constexpr RuleSpec lion = {
    .name = "lion",
    .default_learning_rate = 0.001,
    .parameters = {{.name = "beta1", .default_value = 0.9, .low = 0, .high = 1, .high_open = true},
                   {.name = "beta2", .default_value = 0.99, .low = 0, .high = 1, .high_open = true},
                   {.name = "use_non_lazy_lion", .default_value = 0, .choices = kFlag}},
    .slots = {{.name = "momenta"}},
    .steps_every_row = {.parameter = "use_non_lazy_lion", .value = true},
    .forms = EMBERTABLE_FORMS(Lion),
};

#else

/// w = w - lr*sign(beta1*m + (1-beta1)*g); m = beta2*m + (1-beta2)*g.
struct Lion : Formula {
  static constexpr int kSlots = 1;
  MovingAverage direction, momentum;
  F16 rate;

  Lion(const StepScalars& step, std::int32_t)
      : direction(step.value[0]), momentum(step.value[1]), rate(set1(step.learning_rate)) {}

  EMBERTABLE_INLINE void element(F16& w, F16* slot, F16 g, const F16*) const {
    w = w - rate * sgn(direction.next(slot[0], g));
    slot[0] = momentum.next(slot[0], g);
  }
};

#endif
