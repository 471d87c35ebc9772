#include "optimizer/formula.inl"

/// w = g.
struct Assign : Formula {
  Assign(const StepScalars&, std::int32_t) {}

  EMBERTABLE_INLINE void element(F16& w, F16*, F16 g, const F16*) const { w = g; }
};
constexpr RuleForms kForms = tile_form<Assign>();
