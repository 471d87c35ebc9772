#ifndef EMBERTABLE_LEVEL

/// The defaults are those of Keras Adadelta. Source: TF core kernels, ApplyAdadelta.
constexpr RuleSpec adadelta = {
    .name = "adadelta",
    .default_learning_rate = 0.001,
    .parameters = {{.name = "rho", .default_value = 0.95, .low = 0, .high = 1},
                   {.name = "epsilon", .default_value = 1e-7, .low = 0, .low_open = true}},
    .slots = {{.name = "accumulators"}, {.name = "updates"}},
    .forms = EMBERTABLE_FORMS(Adadelta),
};

#else

/// a = rho*a + (1-rho)*g*g; u = sqrt(up + epsilon) / sqrt(a + epsilon) * g; w = w - lr*u; up =
/// rho*up + (1-rho)*u*u.
struct Adadelta : Formula {
  static constexpr int kSlots = 2;
  MovingAverage square;
  F16 rate, epsilon;

  Adadelta(const StepScalars& step, std::int32_t)
      : square(step.value[0]), rate(set1(step.learning_rate)), epsilon(set1(step.value[1])) {}

  EMBERTABLE_INLINE void element(F16& w, F16* slot, F16 g, const F16*) const {
    slot[0] = square.next_of_square(slot[0], g);
    const F16 update = sqrt(slot[1] + epsilon) / sqrt(slot[0] + epsilon) * g;
    w = w - rate * update;
    slot[1] = square.next_of_square(slot[1], update);
  }
};

#endif
