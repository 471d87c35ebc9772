#ifndef EMBERTABLE_LEVEL

/// A row of zeros does not move. Defaults and source: FBGEMM 1.9, LARS_SGD; You et al. 2017, "Large
/// Batch Training of Convolutional Networks", algorithm 1.
constexpr RuleSpec lars_sgd = {
    .name = "lars_sgd",
    .default_learning_rate = 0.01,
    .parameters =
        {{.name = "momentum", .default_value = 0.9, .low = 0, .high = 1, .high_open = true},
         {.name = "eta", .default_value = 0.001, .low = 0},
         {.name = "weight_decay", .default_value = 0, .low = 0}},
    .slots = {{.name = "momenta"}},
    .keeps_rows_of_zeros = true,
    .has_own_decay = true,
    .forms = EMBERTABLE_FORMS(LarsSgd),
};

#else

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

#endif
