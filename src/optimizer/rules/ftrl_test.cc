#include <gtest/gtest.h>

#include "testing/rule_rows.h"

namespace embertable {
namespace {

using Floats = std::vector<float>;

const AddReference ftrl_reference(
    "ftrl",
    [](const Optimizer& optimizer, double rate, std::int64_t, Numbers& w,
       std::vector<Numbers>& slots, const Numbers& g) {
      const double p = -binary32(optimizer, "learning_rate_power");
      const double l1 = binary32(optimizer, "l1_regularization_strength");
      const double l2 = binary32(optimizer, "l2_regularization_strength");
      const double beta = binary32(optimizer, "beta");
      const bool multiplied = optimizer.parameter("multiply_linear_by_learning_rate") != 0;
      for (std::size_t i = 0; i < w.size(); ++i) {
        Bounded &n = slots[0][i], &z = slots[1][i];
        const Bounded before = pow(n, p);
        n += g[i] * g[i];
        const Bounded after = pow(n, p), change = after - before;
        Bounded denominator, limit = l1;
        if (multiplied) {
          z = z + rate * g[i] - change * w[i];
          denominator = after + Bounded(2) * rate * l2 + beta;
          limit = Bounded(rate) * l1;
        } else {
          z = z + g[i] - change * w[i] / rate;
          denominator = (after + beta) / rate + Bounded(2) * l2;
        }
        w[i] = quotient(min(max(z, -limit), limit) - z, denominator);
      }
    },
    {{{"l1_regularization_strength", 0.3}, {"l2_regularization_strength", 0.1}},
     {{"learning_rate_power", -0.3}, {"beta", 0.7}},
     {{"learning_rate_power", 0}},
     {{"learning_rate_power", -0.75},
      {"initial_accumulator_value", 0},
      {"allow_zero_accumulator", true}},
     {{"multiply_linear_by_learning_rate", true}},
     {{"multiply_linear_by_learning_rate", true},
      {"l1_regularization_strength", 0.3},
      {"l2_regularization_strength", 0.1},
      {"beta", 0.7},
      {"learning_rate_power", -1}}});

TEST(Ftrl, TwoStepsByHand) {
  TestedRow row(Optimizer("ftrl", 0.5, {{"initial_accumulator_value", 16}}), {2, 0});
  EXPECT_EQ(row.step(0.5f, {3, 0}), (Floats{0.1f, 0}));  // z = 3 - (5 - 4) * 2 / 0.5, D = 5 / 0.5
  EXPECT_EQ(row.slot(0), (Floats{25, 16}));
  EXPECT_EQ(row.slot(1), (Floats{-1, 0}));
  EXPECT_EQ(row.step(0.5f, {0, 0}), (Floats{0.1f, 0}));  // consistent: stays
  EXPECT_EQ(row.slot(1), (Floats{-1, 0}));
}

TEST(Ftrl, L1SetsToZeroWhatIsNear) {
  TestedRow row(
      Optimizer("ftrl", 1, {{"initial_accumulator_value", 16}, {"l1_regularization_strength", 3}}),
      {0, 0, 0});
  EXPECT_EQ(row.step(1, {3, -3, 0}), (Floats{0, 0, 0}));                       // |z| = 3
  EXPECT_EQ(row.step(1, {12, -12, 0}), (Floats{-12 / 13.0f, 12 / 13.0f, 0}));  // |z| = 15, n = 169
}

TEST(Ftrl, L2AndBetaGrowTheDenominator) {
  const Optimizer::Settings start = {{"initial_accumulator_value", 16}, {"beta", 1}};
  TestedRow beta(Optimizer("ftrl", 0.5, start), {0});
  EXPECT_EQ(beta.step(0.5f, {3}), Floats{-3 / 12.0f});  // D = (5 + 1) / 0.5
  TestedRow l2(
      Optimizer(
          "ftrl", 0.5,
          {{"initial_accumulator_value", 16}, {"beta", 1}, {"l2_regularization_strength", 2}}),
      {0});
  EXPECT_EQ(l2.step(0.5f, {3}), Floats{-3 / 16.0f});
}

TEST(Ftrl, MultipliesTheLinearTermByTheRate) {
  const Optimizer::Settings settings = {{"initial_accumulator_value", 16},
                                        {"multiply_linear_by_learning_rate", true},
                                        {"l1_regularization_strength", 1},
                                        {"l2_regularization_strength", 2},
                                        {"beta", 1}};
  TestedRow row(Optimizer("ftrl", 0.5, settings), {0.25f});
  EXPECT_EQ(row.step(0.5f, {3}), Floats{-0.75f / 8});  // z = 1.5 - 0.25; l1 0.5; D = 5 + 2 + 1
  EXPECT_EQ(row.slot(1), Floats{1.25f});
}

TEST(Ftrl, TakesThePowerOfTheAccumulator) {
  TestedRow one(Optimizer("ftrl", 0.5, {{"learning_rate_power", -1}}), {0});
  one.step(0.5f, {3});
  EXPECT_EQ(one.slot(0), Floats{0.1f + 9});
  TestedRow none(Optimizer("ftrl", 0.5, {{"learning_rate_power", 0}}), {7});
  EXPECT_EQ(none.step(0.5f, {3}), Floats{-1.5f});  // d = 0, D = 1 / 0.5
  TestedRow cube(
      Optimizer("ftrl", 0.5, {{"learning_rate_power", -3}, {"initial_accumulator_value", 1}}), {0});
  EXPECT_EQ(cube.step(0.5f, {1}), Floats{-1 / 16.0f});  // 2^3 / 0.5
}

TEST(Ftrl, ZeroByZeroIsZero) {
  TestedRow row(
      Optimizer("ftrl", 1, {{"initial_accumulator_value", 0}, {"allow_zero_accumulator", true}}),
      {5, -5});
  EXPECT_EQ(row.step(1, {0, 2}), (Floats{0, -(2 + 10) / 2.0f}));  // z = 2 - (2 - 0) * -5
}

TEST(Ftrl, SlotsAreAccumulatorsThatStartAtTheirParameterAndLinears) {
  TestedRows rows(Optimizer("ftrl", 0.1), 1, 2);
  EXPECT_EQ(rows.slot_name(0), "accumulators");
  EXPECT_EQ(rows.slot_values(0, 0), (Floats{0.1f, 0.1f}));
  EXPECT_EQ(rows.slot_name(1), "linears");
  EXPECT_EQ(rows.slot_values(1, 0), (Floats{0, 0}));
}

TEST(OptimizerCase, 41_FtrlRefusesAccumulatorsThatAreNotPositive) {
  const std::string name = "initial_accumulator_value";
  EXPECT_EQ(
      refusal("ftrl", {{name, 0}}),
      "ftrl: initial_accumulator_value must be > 0 unless allow_zero_accumulator is true, got 0");
  EXPECT_EQ(refusal("ftrl", {{name, 0}, {"allow_zero_accumulator", true}}), "");
  EXPECT_EQ(refusal("ftrl", {{name, -1}}), "ftrl: " + name + " must be >= 0, got -1");
  EXPECT_EQ(refusal("ftrl", {{name, -1}, {"allow_zero_accumulator", true}}),
            "ftrl: " + name + " must be >= 0, got -1");
}

TEST(OptimizerCase, 45_FtrlRefusesAPositivePowerAndNegativeStrengths) {
  EXPECT_EQ(refusal("ftrl", {{"learning_rate_power", 0.1}}),
            "ftrl: learning_rate_power must be <= 0, got 0.1");
  EXPECT_EQ(refusal("ftrl", {{"l1_regularization_strength", -1}}),
            "ftrl: l1_regularization_strength must be >= 0, got -1");
  EXPECT_EQ(refusal("ftrl", {{"l2_regularization_strength", -1}}),
            "ftrl: l2_regularization_strength must be >= 0, got -1");
  EXPECT_EQ(refusal("ftrl", {{"beta", -1}}), "ftrl: beta must be >= 0, got -1");
}

}  // namespace
}  // namespace embertable
