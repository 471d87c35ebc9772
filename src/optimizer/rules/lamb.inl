#include "optimizer/formula.inl"
#include "optimizer/moving_average.inl"

/// m = beta1*m + (1-beta1)*g; v = beta2*v + (1-beta2)*g*g; x = alpha*m / (sqrt(v) + e) +
/// weight_decay*w, where alpha and e hold the correction for t steps; w = w - lr*norm(w)/norm(x)*x.
/// No step where norm(x) is 0.
struct Lamb : Formula {
  static constexpr int kSlots = 2, kRounds = 1, kSums = 2, kValues = 2;
  MovingAverage first, second;
  F16 rate, decay, alpha, epsilon;
  bool decays;

  Lamb(const StepScalars& step, std::int32_t)
      : first(step.value[0]),
        second(step.value[1]),
        rate(set1(step.learning_rate)),
        decay(set1(step.value[3])),
        alpha(set1(step.value[4])),
        epsilon(set1(step.value[5])),
        decays(step.value[3] != 0) {}

  EMBERTABLE_INLINE F16 direction(F16 w, F16 m, F16 v) const {
    const F16 x = alpha * m / (sqrt(v) + epsilon);
    return decays ? x + decay * w : x;
  }

  template <int>
  EMBERTABLE_INLINE void terms(F16* term, F16 w, const F16* slot, F16 g, const F16*) const {
    const F16 x = direction(w, first.next(slot[0], g), second.next_of_square(slot[1], g));
    term[0] = w * w;
    term[1] = x * x;
  }
  template <int>
  EMBERTABLE_INLINE void row(const F16* sum, F16*, F16* value) const {
    value[0] = rate * (sqrt(sum[0]) / sqrt(sum[1]));
    value[1] = sum[1];
  }
  EMBERTABLE_INLINE void element(F16& w, F16* slot, F16 g, const F16* value) const {
    slot[0] = first.next(slot[0], g);
    slot[1] = second.next_of_square(slot[1], g);
    const F16 x = direction(w, slot[0], slot[1]);
    w = select(equal(value[1], zero16()), w, w - value[0] * x);
  }
};
constexpr RuleForms kForms = tile_form<Lamb>();
