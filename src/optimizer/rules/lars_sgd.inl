#include "optimizer/formula.inl"

/// r = lr*eta*norm(w) / (norm(g) + weight_decay*norm(w)), 0 where that divides by 0; m = momentum*m
/// + r*(g + weight_decay*w); w = w - m.
struct LarsSgd : Formula {
  static constexpr int kSlots = 1, kRounds = 1, kSums = 2, kValues = 1;
  F16 momentum, rate, decay;
  bool decays;

  LarsSgd(const StepScalars& step, std::int32_t)
      : momentum(set1(step.value[0])),
        rate(set1(step.learning_rate * step.value[1])),
        decay(set1(step.value[2])),
        decays(step.value[2] != 0) {}

  template <int>
  EMBERTABLE_INLINE void terms(F16* term, F16 w, const F16*, F16 g, const F16*) const {
    term[0] = w * w;
    term[1] = g * g;
  }
  template <int>
  EMBERTABLE_INLINE void row(const F16* sum, F16*, F16* value) const {
    const F16 norm = sqrt(sum[0]);
    const F16 divisor = sqrt(sum[1]) + decay * norm;
    value[0] = select(equal(divisor, zero16()), zero16(), rate * norm / divisor);
  }
  EMBERTABLE_INLINE void element(F16& w, F16* slot, F16 g, const F16* value) const {
    slot[0] = momentum * slot[0] + value[0] * (decays ? g + decay * w : g);
    w = w - slot[0];
  }
};
constexpr RuleForms kForms = tile_form<LarsSgd>();
