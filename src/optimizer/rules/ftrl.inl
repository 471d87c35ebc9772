#ifndef EMBERTABLE_LEVEL

/// Powers and strengths outside their ranges are refused, and accumulators start at zero where that
/// is allowed, as in tpu_embedding.py, FtrlParameters. Source: TF tpu_embedding_v2_utils.py, FTRL.
constexpr RuleSpec ftrl = {
    .name = "ftrl",
    .default_learning_rate = 0.001,
    .parameters = {{.name = "learning_rate_power", .default_value = -0.5, .high = 0},
                   {.name = "l1_regularization_strength", .low = 0},
                   {.name = "l2_regularization_strength", .low = 0},
                   {.name = "beta", .low = 0},
                   {.name = "initial_accumulator_value", .default_value = 0.1, .low = 0},
                   {.name = "multiply_linear_by_learning_rate", .choices = kFlag},
                   {.name = "allow_zero_accumulator", .choices = kFlag}},
    .slots = {{.name = "accumulators", .initial_value = "initial_accumulator_value"},
              {.name = "linears"}},
    .check =
        [](const Optimizer& optimizer) {
          const double initial = optimizer.parameter("initial_accumulator_value");
          if (static_cast<float>(initial) > 0 || optimizer.parameter("allow_zero_accumulator") != 0)
            return;
          throw ValueError(
              "ftrl: initial_accumulator_value must be > 0 unless allow_zero_accumulator is true, "
              "got " +
              Setting(initial).to_string());
        },
    .forms = EMBERTABLE_FORMS(Ftrl),
};

#else

/// N = n + g*g; d = N^p - n^p with p = -learning_rate_power. z = (z+g) - (d*w)/lr, D =
/// (N^p+beta)/lr + 2*l2, l = l1; where the linear term is multiplied by the rate: z = (z+lr*g) -
/// d*w, D = (N^p+(2*lr)*l2) + beta, l = lr*l1. w = (z clamped to [-l, l] - z) / D; 0 by anything
/// is 0.
struct Ftrl : Formula {
  static constexpr int kSlots = 2;
  Power power;
  F16 rate, beta, low, high, l2;
  bool limited, multiplied;

  Ftrl(const StepScalars& step, std::int32_t)
      : power(-step.value[0]),
        rate(set1(step.learning_rate)),
        beta(set1(step.value[3])),
        limited(step.value[1] != 0),
        multiplied(step.value[5] != 0) {
    const float limit = multiplied ? step.learning_rate * step.value[1] : step.value[1];
    low = set1(-limit);
    high = set1(limit);
    l2 = set1(multiplied ? 2 * step.learning_rate * step.value[2] : 2 * step.value[2]);
  }

  EMBERTABLE_INLINE void element(F16& w, F16* slot, F16 g, const F16*) const {
    const F16 n = slot[0] + g * g;
    const F16 a = power(n), d = a - power(slot[0]);
    F16 z = slot[1], denominator;
    if (multiplied) {
      z = (z + rate * g) - d * w;
      denominator = (a + l2) + beta;
    } else {
      z = (z + g) - d * w / rate;
      denominator = (a + beta) / rate + l2;
    }
    const F16 numerator = limited ? at_most(at_least(z, low), high) - z : negate(z);
    w = quotient(numerator, denominator);
    slot[0] = n;
    slot[1] = z;
  }
};

#endif
