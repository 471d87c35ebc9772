#include "optimizer/formula.inl"

/// a = a + mean(g*g); k = lr / (sqrt(a) + epsilon); w = w - k*g.
struct RowwiseAdagrad : Formula {
  static constexpr int kSlots = 1, kRounds = 1, kSums = 1, kValues = 1;
  static constexpr bool row_wise(int) { return true; }
  float rate, epsilon, dim;

  RowwiseAdagrad(const StepScalars& step, std::int32_t columns)
      : rate(step.learning_rate), epsilon(step.value[1]), dim(static_cast<float>(columns)) {}

  template <int>
  EMBERTABLE_INLINE void terms(F16* term, F16, const F16*, F16 g, const F16*) const {
    term[0] = g * g;
  }
  template <int, class T>
  EMBERTABLE_INLINE void row(const T* sum, T* slot, T* value) const {
    slot[0] = slot[0] + sum[0] / number<T>(dim);
    value[0] = number<T>(rate) / (sqrt(slot[0]) + number<T>(epsilon));
  }
  EMBERTABLE_INLINE void element(F16& w, F16*, F16 g, const F16* value) const {
    w = w - value[0] * g;
  }
};
constexpr RuleForms kForms = fused_forms<RowwiseAdagrad>();

/// l2: G = g + weight_decay*w; a = a + mean(G*G); w = (1 - k*weight_decay)*w - k*g.
/// decoupled: w = (1 - lr*weight_decay)*w - k*g.
struct DecayingRowwiseAdagrad : RowwiseAdagrad {
  static constexpr int kValues = 2;
  F16 decay;
  float keep;
  bool l2;

  DecayingRowwiseAdagrad(const StepScalars& step, std::int32_t columns)
      : RowwiseAdagrad(step, columns),
        decay(set1(step.value[2])),
        keep(1 - step.learning_rate * step.value[2]),
        l2(step.value[3] == 1) {}

  template <int>
  EMBERTABLE_INLINE void terms(F16* term, F16 w, const F16*, F16 g, const F16*) const {
    const F16 all = l2 ? g + decay * w : g;
    term[0] = all * all;
  }
  template <int kRound>
  EMBERTABLE_INLINE void row(const F16* sum, F16* slot, F16* value) const {
    RowwiseAdagrad::row<kRound>(sum, slot, value);
    value[1] = l2 ? set1(1) - value[0] * decay : set1(keep);
  }
  EMBERTABLE_INLINE void element(F16& w, F16*, F16 g, const F16* value) const {
    w = value[1] * w - value[0] * g;
  }
};
constexpr RuleForms kDecayForms = tile_form<DecayingRowwiseAdagrad>();
