#ifndef EMBERTABLE_LEVEL

/// The original has no default momentum; here it is that of FBGEMM 1.9. Source: TF core kernels,
/// ApplyMomentum.
constexpr RuleSpec momentum = {
    .name = "momentum",
    .default_learning_rate = 0.01,
    .parameters =
        {{.name = "momentum", .default_value = 0.9, .low = 0, .high = 1, .high_open = true},
         {.name = "use_nesterov", .default_value = 0, .choices = kFlag}},
    .slots = {{.name = "momenta"}},
    .forms = EMBERTABLE_FORMS(Momentum),
};

#else

/// m = momentum*m + g; w = w - lr*m, or w - (lr*g + lr*momentum*m).
struct Momentum : Formula {
  static constexpr int kSlots = 1;
  F16 rate, momentum, rate_momentum;
  bool nesterov;

  Momentum(const StepScalars& step, std::int32_t)
      : rate(set1(step.learning_rate)),
        momentum(set1(step.value[0])),
        rate_momentum(set1(step.learning_rate * step.value[0])),
        nesterov(step.value[1] != 0) {}

  EMBERTABLE_INLINE void element(F16& w, F16* slot, F16 g, const F16*) const {
    slot[0] = momentum * slot[0] + g;
    w = w - (nesterov ? rate * g + rate_momentum * slot[0] : rate * slot[0]);
  }
};

#endif
