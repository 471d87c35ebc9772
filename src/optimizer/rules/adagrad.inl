#ifndef EMBERTABLE_LEVEL

/// Source: TF tpu_embedding_v2_utils.py, Adagrad; optimizers core kernels ApplyAdagradV2 with
/// epsilon 0.
constexpr RuleSpec adagrad = {
    .name = "adagrad",
    .default_learning_rate = 0.001,
    .parameters =
        {{.name = "initial_accumulator_value", .default_value = 0.1, .low = 0, .low_open = true}},
    .slots = {{.name = "accumulators", .initial_value = "initial_accumulator_value"}},
    .forms = EMBERTABLE_FORMS(Adagrad),
};

#else

/// a = a + g*g; w = w - lr*g / sqrt(a). 0/0 counts as 0.
struct Adagrad : Formula {
  static constexpr bool kFused = true;
  static constexpr int kSlots = 1;
  F16 rate;

  Adagrad(const StepScalars& step, std::int32_t) : rate(set1(step.learning_rate)) {}

  EMBERTABLE_INLINE void element(F16& w, F16* slot, F16 g, const F16*) const {
    slot[0] = slot[0] + g * g;
    w = w - quotient(rate * g, sqrt(slot[0]));
  }
};

#endif
