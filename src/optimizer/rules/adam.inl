#ifndef EMBERTABLE_LEVEL

/// The rule corrects no bias: a caller who wants the correction gives lr * sqrt(1-beta_2^t) /
/// (1-beta_1^t) as rate. Source: TF tpu_embedding_v2_utils.py, Adam.
constexpr RuleSpec adam = {
    .name = "adam",
    .default_learning_rate = 0.001,
    .parameters =
        {{.name = "beta_1", .default_value = 0.9, .low = 0, .high = 1, .high_open = true},
         {.name = "beta_2", .default_value = 0.999, .low = 0, .high = 1, .high_open = true},
         {.name = "epsilon", .default_value = 1e-7, .low = 0, .low_open = true},
         {.name = "lazy_adam", .default_value = 1, .choices = kFlag},
         {.name = "sum_inside_sqrt", .default_value = 1, .choices = kFlag}},
    .slots = {{.name = "momenta"}, {.name = "velocities"}},
    .steps_every_row = {.parameter = "lazy_adam", .value = false},
    .forms = EMBERTABLE_FORMS(Adam),
};

#else

/// m = beta_1*m + (1-beta_1)*g; v = beta_2*v + (1-beta_2)*g*g; w = w - lr*m / sqrt(v + epsilon^2),
/// or over sqrt(v) + epsilon.
struct Adam : Formula {
  static constexpr int kSlots = 2;
  MovingAverage first, second;
  F16 rate, epsilon;
  bool inside;

  Adam(const StepScalars& step, std::int32_t)
      : first(step.value[0]),
        second(step.value[1]),
        rate(set1(step.learning_rate)),
        epsilon(set1(step.value[4] != 0 ? step.value[2] * step.value[2] : step.value[2])),
        inside(step.value[4] != 0) {}

  EMBERTABLE_INLINE void element(F16& w, F16* slot, F16 g, const F16*) const {
    slot[0] = first.next(slot[0], g);
    slot[1] = second.next_of_square(slot[1], g);
    w = w - rate * slot[0] / (inside ? sqrt(slot[1] + epsilon) : sqrt(slot[1]) + epsilon);
  }
};

#endif
