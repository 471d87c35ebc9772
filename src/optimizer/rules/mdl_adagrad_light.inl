#include "kernels/power.inl"
#include "optimizer/formula.inl"

/// a = a + g*g; x = x - lr*g / a^(-lr_power) of slot `weights`; w = x. 0/0 counts as 0.
struct MdlAdagradLight : Formula {
  static constexpr int kSlots = 3;
  Power power;
  F16 rate;

  MdlAdagradLight(const StepScalars& step, std::int32_t)
      : power(-step.value[1]), rate(set1(step.learning_rate)) {}

  EMBERTABLE_INLINE void element(F16& w, F16* slot, F16 g, const F16*) const {
    slot[0] = slot[0] + g * g;
    slot[1] = slot[1] - quotient(rate * g, power(slot[0]));
    w = slot[1];
  }
};
constexpr RuleForms kForms = tile_form<MdlAdagradLight>();
