#ifndef EMBERTABLE_LEVEL

/// The step where no parameter asks for MDL, whose update is not public. The row becomes what slot
/// `weights` is after its step. Power and accumulators are by default as in Adagrad. Source: TF
/// optimization_parameters.proto, MdlAdagradLightParameters.
constexpr RuleSpec mdl_adagrad_light = {
    .name = "mdl_adagrad_light",
    .default_learning_rate = 0.001,
    .parameters =
        {{.name = "l2"},
         {.name = "lr_power", .default_value = -0.5, .high = 0},
         {.name = "min_servable_mdl_benefit"},
         {.name = "mdl_mix_in_margin"},
         {.name = "mdl_benefit_rampup_coeff"},
         {.name = "mdl_min_weight"},
         {.name = "benefit_revisit_scale"},
         {.name = "max_event_benefit"},
         {.name = "max_total_benefit"},
         {.name = "mdl_hard_limit"},
         {.name = "hard_limit_min_benefit", .choices = kFlag},
         {.name = "mdl_regularize", .choices = kFlag},
         {.name = "initial_accumulator_value", .default_value = 0.1, .low = 0, .low_open = true}},
    .slots = {{.name = "accumulators", .initial_value = "initial_accumulator_value"},
              {.name = "weights"},
              {.name = "benefits"}},
    .check =
        [](const Optimizer& optimizer) {
          const double factor = optimizer.options().weight_decay_factor;
          if (factor != 0) {
            throw ValueError("mdl_adagrad_light: weight_decay_factor must be 0, got " +
                             Setting(factor).to_string());
          }
          for (const auto& [name, value] : optimizer.parameters()) {
            if (value == 0 || name == "lr_power" || name == "initial_accumulator_value") continue;
            const bool is_flag = name == "hard_limit_min_benefit" || name == "mdl_regularize";
            throw NotImplemented(
                "mdl_adagrad_light: " + name + " must be " +
                (is_flag ? "false, got true" : "0, got " + Setting(value).to_string()) +
                ": the update by MDL benefits is not offered");
          }
        },
    .forms = EMBERTABLE_FORMS(MdlAdagradLight),
};

#else

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

#endif
