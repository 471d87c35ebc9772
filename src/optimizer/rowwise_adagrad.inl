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
