#ifndef EMBERTABLE_LEVEL

/// Source: TF tpu_embedding_v2_utils.py, SGD.
constexpr RuleSpec sgd = {
    .name = "sgd",
    .default_learning_rate = 0.01,
    .forms = EMBERTABLE_FORMS(Sgd),
};

#else

/// w = w - lr*g.
struct Sgd : Formula {
  static constexpr bool kFused = true;
  F16 rate;

  Sgd(const StepScalars& step, std::int32_t) : rate(set1(step.learning_rate)) {}

  EMBERTABLE_INLINE void element(F16& w, F16*, F16 g, const F16*) const { w = w - rate * g; }
};

#endif
