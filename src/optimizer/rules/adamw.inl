#include "optimizer/formula.inl"
#include "optimizer/moving_average.inl"

/// m = beta1*m + (1-beta1)*g; v = beta2*v + (1-beta2)*g*g; w = keep*w - alpha*m / (sqrt(v) + e),
/// where alpha and e hold the correction for t steps of the table.
struct AdamW : Formula {
  static constexpr int kSlots = 2;
  MovingAverage first, second;
  F16 alpha, epsilon, keep;

  AdamW(const StepScalars& step, std::int32_t)
      : first(step.value[0]),
        second(step.value[1]),
        alpha(set1(step.value[5])),
        epsilon(set1(step.value[6])),
        keep(set1(step.value[7])) {}

  EMBERTABLE_INLINE void element(F16& w, F16* slot, F16 g, const F16*) const {
    apply(w, slot, g, alpha, epsilon);
  }
  EMBERTABLE_INLINE void apply(F16& w, F16* slot, F16 g, F16 a, F16 e) const {
    slot[0] = first.next(slot[0], g);
    slot[1] = second.next_of_square(slot[1], g);
    w = keep * w - a * slot[0] / (sqrt(slot[1]) + e);
  }
};
constexpr RuleForms kForms = tile_form<AdamW>();

/// The same with the correction for t updates of the row, which its third slot counts.
struct CountingAdamW : AdamW {
  static constexpr int kSlots = 3, kRounds = 1, kValues = 2;
  static constexpr bool row_wise(int slot) { return slot == 2; }
  float beta1, beta2, rate, uncorrected_epsilon;

  CountingAdamW(const StepScalars& step, std::int32_t dim)
      : AdamW(step, dim),
        beta1(step.value[0]),
        beta2(step.value[1]),
        rate(step.learning_rate),
        uncorrected_epsilon(step.value[2]) {}

  template <int>
  EMBERTABLE_INLINE void row(const F16*, F16* slot, F16* value) const {
    slot[2] = slot[2] + set1(1);
    float count[16], alphas[16], epsilons[16];
    store(count, slot[2]);
    for (int r = 0; r < 16; ++r) {
      const BiasCorrection correction(beta1, beta2, updates(count[r]));
      alphas[r] = correction.rate(rate);
      epsilons[r] = correction.epsilon(uncorrected_epsilon);
    }
    value[0] = load(alphas);
    value[1] = load(epsilons);
  }
  EMBERTABLE_INLINE void element(F16& w, F16* slot, F16 g, const F16* value) const {
    apply(w, slot, g, value[0], value[1]);
  }

  /// A count that is no number from 1 to 2^24, which only a caller's own slot can hold, is the
  /// nearest one.
  EMBERTABLE_INLINE static std::int64_t updates(float count) {
    return count >= 1 ? static_cast<std::int64_t>(count < 0x1p24f ? count : 0x1p24f) : 1;
  }
};
constexpr RuleForms kCountingForms = tile_form<CountingAdamW>();
