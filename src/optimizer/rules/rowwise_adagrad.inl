#ifndef EMBERTABLE_LEVEL

/// "l2" makes the decay part of the gradient; "decoupled" does not.
constexpr std::string_view kWeightDecayModes[] = {"none", "l2", "decoupled"};

/// Source: FBGEMM 1.9, EXACT_ROWWISE_ADAGRAD and its WeightDecayMode.
constexpr RuleSpec rowwise_adagrad = {
    .name = "rowwise_adagrad",
    .default_learning_rate = 0.01,
    .parameters = {{.name = "initial_accumulator_value", .default_value = 0, .low = 0},
                   {.name = "epsilon", .default_value = 1e-8, .low = 0},
                   {.name = "weight_decay", .default_value = 0, .low = 0},
                   {.name = "weight_decay_mode", .default_value = 0, .choices = kWeightDecayModes}},
    .slots = {{.name = "accumulators",
               .row_wise = true,
               .initial_value = "initial_accumulator_value"}},
    .has_own_decay = true,
    .check =
        [](const Optimizer& optimizer) {
          const double decay = optimizer.parameter("weight_decay");
          if (optimizer.parameter("weight_decay_mode") != 0 || decay == 0) return;
          throw ValueError(
              "rowwise_adagrad: weight_decay must be 0 where weight_decay_mode is none, got " +
              Setting(decay).to_string());
        },
    .forms = EMBERTABLE_FORMS(RowwiseAdagrad),
    .other_formula = {.parameter = "weight_decay_mode",
                      .forms = EMBERTABLE_FORMS(DecayingRowwiseAdagrad)},
};

#else

/// a = a + mean(g*g); k = lr / (sqrt(a) + epsilon); w = w - k*g.
struct RowwiseAdagrad : Formula {
  static constexpr bool kFused = true;
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

/// l2: G = g + weight_decay*w; a = a + mean(G*G); w = (1 - k*weight_decay)*w - k*g.
/// decoupled: w = (1 - lr*weight_decay)*w - k*g.
struct DecayingRowwiseAdagrad : RowwiseAdagrad {
  static constexpr bool kFused = false;
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

#endif
