#ifndef EMBERTABLE_LEVEL

/// The rate has no part in the step. Source: TF optimization_parameters.proto, AssignParameters.
constexpr RuleSpec assign = {
    .name = "assign",
    .default_learning_rate = 0,
    .forms = EMBERTABLE_FORMS(Assign),
};

#else

/// w = g.
struct Assign : Formula {
  Assign(const StepScalars&, std::int32_t) {}

  EMBERTABLE_INLINE void element(F16& w, F16*, F16 g, const F16*) const { w = g; }
};

#endif
