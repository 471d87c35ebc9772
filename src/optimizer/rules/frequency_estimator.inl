#ifndef EMBERTABLE_LEVEL

/// The rate carries the global step. The table holds the estimated number of steps between two uses
/// of its row and should start at max_delta. Gradients are not read. `weight_exponent`, which maps
/// an estimate d to the weight (d/max_delta)^weight_exponent, is kept and reported; lookups give
/// the estimate. No defaults are published; here an estimate follows about the last hundred gaps.
/// Source: TF tpu_embedding.py, FrequencyEstimatorParameters, and optimization_parameters.proto.
constexpr RuleSpec frequency_estimator = {
    .name = "frequency_estimator",
    .default_learning_rate = 1,
    .parameters = {{.name = "tau",
                    .default_value = 0.01,
                    .low = 0,
                    .high = 1,
                    .low_open = true,
                    .high_open = true},
                   {.name = "max_delta", .default_value = 1e6, .low = 0, .low_open = true},
                   {.name = "outlier_threshold", .default_value = 100, .low = 0},
                   {.name = "weight_exponent", .default_value = 1}},
    .slots = {{.name = "last_hit_step"}},
    .only_dim = 1,
    .forms = EMBERTABLE_FORMS(FrequencyEstimator),
};

#else

/// d = step - last; c = d, at most max_delta; w = c where d >= outlier_threshold*w, elsewhere
/// w*(1-tau) + c*tau; last = step.
struct FrequencyEstimator : Formula {
  static constexpr int kSlots = 1;
  F16 now, tau, rest, most, threshold;

  FrequencyEstimator(const StepScalars& step, std::int32_t)
      : now(set1(step.learning_rate)),
        tau(set1(step.value[0])),
        rest(set1(1 - step.value[0])),
        most(set1(step.value[1])),
        threshold(set1(step.value[2])) {}

  EMBERTABLE_INLINE void element(F16& w, F16* slot, F16, const F16*) const {
    const F16 d = now - slot[0], c = at_most(d, most), outlier = threshold * w;
    const F16 blend = w * rest + c * tau;
    w = select(less(outlier, d), c, select(equal(outlier, d), c, blend));
    slot[0] = now;
  }
};

#endif
