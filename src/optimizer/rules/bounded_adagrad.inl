#ifndef EMBERTABLE_LEVEL

/// The bound of BoundedAdagradParameters is on the change of the variable. The accumulator starts
/// as in TF tpu_embedding_v2_utils.py, Adagrad. Source: TF optimization_parameters.proto,
/// BoundedAdagradParameters.
constexpr RuleSpec bounded_adagrad = {
    .name = "bounded_adagrad",
    .default_learning_rate = 0.001,
    .parameters =
        {{.name = "update_accumulator_first", .choices = kFlag},
         {.name = "max_var_update", .low = 0},   // 0: no bound
         {.name = "max_accumulator", .low = 0},  // 0: no bound
         {.name = "initial_accumulator_value", .default_value = 0.1, .low = 0, .low_open = true}},
    .slots = {{.name = "accumulators", .initial_value = "initial_accumulator_value"}},
    .forms = EMBERTABLE_FORMS(BoundedAdagrad),
};

#else

/// n = a + g*g, at most max_accumulator; u = lr*g / sqrt(n), or by sqrt(a) unless the accumulator
/// comes first, clamped to max_var_update; w = w - u. 0/0 counts as 0. A bound of 0 is none.
struct BoundedAdagrad : Formula {
  static constexpr int kSlots = 1;
  F16 rate, low, high, cap;
  bool first, bounded, capped;

  BoundedAdagrad(const StepScalars& step, std::int32_t)
      : rate(set1(step.learning_rate)),
        low(set1(-step.value[1])),
        high(set1(step.value[1])),
        cap(set1(step.value[2])),
        first(step.value[0] != 0),
        bounded(step.value[1] > 0),
        capped(step.value[2] > 0) {}

  EMBERTABLE_INLINE void element(F16& w, F16* slot, F16 g, const F16*) const {
    F16 n = slot[0] + g * g;
    if (capped) n = at_most(n, cap);
    F16 u = quotient(rate * g, sqrt(first ? n : slot[0]));
    if (bounded) u = at_most(at_least(u, low), high);
    slot[0] = n;
    w = w - u;
  }
};

#endif
