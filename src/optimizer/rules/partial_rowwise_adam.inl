#include "optimizer/formula.inl"
#include "optimizer/moving_average.inl"

/// m = beta1*m + (1-beta1)*g; v = beta2*v + (1-beta2)*mean(g*g); w = keep*w - alpha*m / (sqrt(v) +
/// e), where alpha and e hold the correction for t steps.
struct PartialRowwiseAdam : Formula {
  static constexpr int kSlots = 2, kRounds = 1, kSums = 1, kValues = 1;
  static constexpr bool row_wise(int slot) { return slot == 1; }
  MovingAverage first, second;
  F16 alpha, epsilon, keep, dim;

  PartialRowwiseAdam(const StepScalars& step, std::int32_t columns)
      : first(step.value[0]),
        second(step.value[1]),
        alpha(set1(step.value[4])),
        epsilon(set1(step.value[5])),
        keep(set1(step.value[6])),
        dim(set1(static_cast<float>(columns))) {}

  template <int>
  EMBERTABLE_INLINE void terms(F16* term, F16, const F16*, F16 g, const F16*) const {
    term[0] = g * g;
  }
  template <int>
  EMBERTABLE_INLINE void row(const F16* sum, F16* slot, F16* value) const {
    slot[1] = second.next(slot[1], sum[0] / dim);
    value[0] = sqrt(slot[1]) + epsilon;
  }
  EMBERTABLE_INLINE void element(F16& w, F16* slot, F16 g, const F16* value) const {
    slot[0] = first.next(slot[0], g);
    w = keep * w - alpha * slot[0] / value[0];
  }
};
constexpr RuleForms kForms = tile_form<PartialRowwiseAdam>();
