#include <gtest/gtest.h>

#include "testing/rule_rows.h"

namespace embertable {
namespace {

using Floats = std::vector<float>;

const AddReference frequency_aware_adagrad_reference(
    "frequency_aware_adagrad",
    [](const Optimizer& optimizer, double rate, std::int64_t step, Numbers& w,
       std::vector<Numbers>& slots, const Numbers& g) {
      const double p = binary32(optimizer, "probability_exponent");
      const double l1 = binary32(optimizer, "l1_regularization_strength");
      const double l2 = binary32(optimizer, "l2_regularization_strength");
      for (std::size_t i = 0; i < w.size(); ++i) {
        Bounded &a = slots[0][i], &c = slots[1][i];
        c += 1;
        a = max(binary32(optimizer, "accumulator_decay") * a + g[i] * g[i],
                binary32(optimizer, "initial_accumulator_value"));
        const Bounded s = min(pow(Bounded(static_cast<double>(step)) / c, p),
                              binary32(optimizer, "max_lr_multiplier"));
        w[i] -= rate * (g[i] * s / sqrt(a) + l1 * sign(w[i]) + l2 * w[i]);
      }
    },
    {{{"l1_regularization_strength", 0.1}, {"l2_regularization_strength", 0.2}},
     {{"probability_exponent", 1}, {"max_lr_multiplier", 2}},
     {{"probability_exponent", 0.3}, {"accumulator_decay", 0.9}},
     {{"probability_exponent", 0}, {"accumulator_decay", 0}, {"initial_accumulator_value", 2}}});

/// A row whose step counter stands at `counter`.
Floats step(TestedRows& rows, float rate, std::int64_t counter, const Floats& gradient) {
  rows.update(simd_level(), {0}, {gradient}, rate, counter);
  return rows.row_values(0);
}

TestedRows one_row(const Optimizer::Settings& settings, const Floats& row) {
  Optimizer::Settings all = settings;
  all.emplace_back("initial_accumulator_value", 16);
  TestedRows rows(Optimizer("frequency_aware_adagrad", 1, all), 1,
                  static_cast<std::int32_t>(row.size()));
  std::ranges::copy(row, rows.row(0));
  return rows;
}

TEST(FrequencyAwareAdagrad, TwoStepsByHand) {
  TestedRows row = one_row({}, {10, 1});
  EXPECT_EQ(step(row, 5, 4, {3, 0}), (Floats{4, 1}));  // s = sqrt(4 / 1), by sqrt(16 + 9)
  EXPECT_EQ(row.slot_values(0, 0), (Floats{25, 16}));
  EXPECT_EQ(row.slot_values(1, 0), (Floats{1, 1}));
  EXPECT_EQ(step(row, 13, 18, {12, 0}), (Floats{4 - 36, 1}));  // s = sqrt(18 / 2), a = 25 + 144
  EXPECT_EQ(row.slot_values(1, 0), (Floats{2, 2}));
}

TEST(FrequencyAwareAdagrad, StepsCountAtLeastOne) {
  TestedRows row = one_row({}, {10});
  EXPECT_EQ(step(row, 5, 0, {3}), Floats{7});
}

TEST(FrequencyAwareAdagrad, TakesTheStepCounterNotTheStep) {
  TestedRows row = one_row({}, {10});
  const Rule& rule = find_rule("frequency_aware_adagrad");
  const StepScalars scalars =
      rule.begin_step(row.optimizer(), {.learning_rate = 5, .step = 100, .step_counter = 4});
  EXPECT_EQ(scalars.value[6], 4);
}

TEST(FrequencyAwareAdagrad, BoundsTheMultiplierOfRareRows) {
  TestedRows row = one_row({{"max_lr_multiplier", 1.5}}, {10});
  EXPECT_EQ(step(row, 10, 1000, {3}), Floats{1});  // 10 * 3 * 1.5 / 5
}

TEST(FrequencyAwareAdagrad, TakesThePowerOfTheProbability) {
  TestedRows one = one_row({{"probability_exponent", 1}}, {10});
  EXPECT_EQ(step(one, 5, 2, {3}), Floats{4});
  TestedRows none = one_row({{"probability_exponent", 0}}, {10});
  EXPECT_EQ(step(none, 5, 2, {3}), Floats{7});
}

TEST(FrequencyAwareAdagrad, AccumulatorDecaysAsFarAsItsFirstValue) {
  TestedRows row = one_row({{"accumulator_decay", 0.5}}, {10});
  step(row, 0, 1, {4});
  EXPECT_EQ(row.slot_values(0, 0), Floats{24});
  step(row, 0, 1, {0});
  EXPECT_EQ(row.slot_values(0, 0), Floats{16});
}

TEST(FrequencyAwareAdagrad, RegularizesByTheRate) {
  TestedRows l1 = one_row({{"l1_regularization_strength", 2}}, {10, -10, 0});
  EXPECT_EQ(step(l1, 0.5f, 1, {0, 0, 0}), (Floats{9, -9, 0}));
  TestedRows l2 = one_row({{"l2_regularization_strength", 0.5}}, {10, -10, 0});
  EXPECT_EQ(step(l2, 0.5f, 1, {0, 0, 0}), (Floats{7.5f, -7.5f, 0}));
}

TEST(FrequencyAwareAdagrad, SlotsAreAccumulatorsAndCounters) {
  TestedRows rows(Optimizer("frequency_aware_adagrad", 0.1), 1, 2);
  EXPECT_EQ(rows.slot_name(0), "accumulators");
  EXPECT_EQ(rows.slot_values(0, 0), (Floats{0.1f, 0.1f}));
  EXPECT_EQ(rows.slot_name(1), "counters");
  EXPECT_EQ(rows.slot_values(1, 0), (Floats{0, 0}));
}

TEST(FrequencyAwareAdagrad, SaysWhichParameterBreaksWhichRange) {
  const auto refused = [](const std::string& name, double value) {
    return refusal("frequency_aware_adagrad", {{name, value}});
  };
  const std::string rule = "frequency_aware_adagrad: ";
  EXPECT_EQ(refused("l1_regularization_strength", -1),
            rule + "l1_regularization_strength must be >= 0, got -1");
  EXPECT_EQ(refused("l2_regularization_strength", -1),
            rule + "l2_regularization_strength must be >= 0, got -1");
  EXPECT_EQ(refused("max_lr_multiplier", 0), rule + "max_lr_multiplier must be > 0, got 0");
  EXPECT_EQ(refused("probability_exponent", -0.5),
            rule + "probability_exponent must be >= 0, got -0.5");
  EXPECT_EQ(refused("accumulator_decay", 2), rule + "accumulator_decay must be in [0, 1], got 2");
  EXPECT_EQ(refused("initial_accumulator_value", 0),
            rule + "initial_accumulator_value must be > 0, got 0");
}

}  // namespace
}  // namespace embertable
