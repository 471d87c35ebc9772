#include "optimizer/formula.inl"

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
constexpr RuleForms kForms = tile_form<FrequencyEstimator>();
