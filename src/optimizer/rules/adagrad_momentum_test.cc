#include <gtest/gtest.h>

#include "testing/rule_rows.h"

namespace embertable {
namespace {

using Floats = std::vector<float>;

const AddReference adagrad_momentum_reference(
    "adagrad_momentum",
    [](const Optimizer& optimizer, double rate, std::int64_t, Numbers& w,
       std::vector<Numbers>& slots, const Numbers& g) {
      const double momentum = binary32(optimizer, "momentum");
      const double beta2 = binary32(optimizer, "beta2");
      const double epsilon = binary32(optimizer, "epsilon");
      const double p = 1 / static_cast<float>(optimizer.parameter("exponent"));
      const bool nesterov = optimizer.parameter("use_nesterov") != 0;
      for (std::size_t i = 0; i < w.size(); ++i) {
        Bounded &a = slots[0][i], &m = slots[1][i];
        a = beta2 == 1 ? a + g[i] * g[i] : beta2 * a + (Bounded(1) - beta2) * g[i] * g[i];
        const Bounded q = g[i] / pow(a + epsilon, static_cast<float>(p));
        m = momentum * m + q;
        w[i] -= rate * (nesterov ? momentum * m + q : m);
      }
    },
    {{{"momentum", 0.9}, {"use_nesterov", true}, {"exponent", 3}, {"beta2", 0.9}, {"epsilon", 0.1}},
     {{"exponent", 4}, {"epsilon", 1}},
     {{"momentum", 0.5}, {"exponent", 1}, {"beta2", 0}},
     {{"exponent", 0.7}, {"beta2", 0.999}}});

Optimizer adagrad_momentum(const Optimizer::Settings& settings) {
  Optimizer::Settings all = settings;
  all.emplace_back("epsilon", 16);
  return Optimizer("adagrad_momentum", 1, all);
}

TEST(AdagradMomentum, TwoStepsByHand) {
  TestedRow row(adagrad_momentum({{"momentum", 0.5}}), {10, 1});
  EXPECT_EQ(row.step(10, {3, 0}), (Floats{4, 1}));  // a = 9; q = 3 / sqrt(9 + 16) = 0.6
  EXPECT_EQ(row.slot(0), (Floats{9, 0}));
  EXPECT_EQ(row.slot(1), (Floats{0.6f, 0}));
  EXPECT_EQ(row.step(10, {0, -3}), (Floats{1, 7}));  // m = 0.3; -0.6
  EXPECT_EQ(row.slot(1), (Floats{0.3f, -0.6f}));
}

TEST(AdagradMomentum, LooksAheadWithNesterovs) {
  TestedRow row(adagrad_momentum({{"momentum", 0.5}, {"use_nesterov", true}}), {10});
  EXPECT_EQ(row.step(10, {3}), Floats{1});  // 0.5 * 0.6 + 0.6
  EXPECT_EQ(row.slot(1), Floats{0.6f});
}

TEST(AdagradMomentum, AccumulatorDecaysUnlessBeta2IsOne) {
  TestedRow row(adagrad_momentum({{"beta2", 0.5}}), {0});
  row.step(1, {3});
  EXPECT_EQ(row.slot(0), Floats{4.5f});
  row.step(1, {0});
  EXPECT_EQ(row.slot(0), Floats{2.25f});
}

TEST(AdagradMomentum, TakesTheRootThatTheExponentSays) {
  const std::pair<double, float> roots[] = {{1, 256}, {2, 16}, {4, 4}, {0.5, 65536}, {8, 2}};
  for (const auto& [exponent, root] : roots) {
    TestedRow row(Optimizer("adagrad_momentum", 1, {{"exponent", exponent}, {"epsilon", 252}}),
                  {0});
    EXPECT_EQ(row.step(1, {2}), Floats{-2 / root}) << exponent;
  }
}

TEST(AdagradMomentum, SlotsAreAccumulatorsAndMomentaThatStartAtZero) {
  TestedRows rows(Optimizer("adagrad_momentum", 0.1), 1, 2);
  EXPECT_EQ(rows.slot_name(0), "accumulators");
  EXPECT_EQ(rows.slot_name(1), "momenta");
  EXPECT_EQ(rows.slot_values(0, 0), (Floats{0, 0}));
  EXPECT_EQ(rows.slot_values(1, 0), (Floats{0, 0}));
}

TEST(OptimizerCase, 44_AdagradMomentumRefusesEpsilonAndExponentsThatAreNotPositive) {
  EXPECT_EQ(refusal("adagrad_momentum", {{"epsilon", 0}}),
            "adagrad_momentum: epsilon must be > 0, got 0");
  EXPECT_EQ(refusal("adagrad_momentum", {{"exponent", 0}}),
            "adagrad_momentum: exponent must be > 0, got 0");
  EXPECT_EQ(refusal("adagrad_momentum", {{"exponent", -1}}),
            "adagrad_momentum: exponent must be > 0, got -1");
}

TEST(AdagradMomentum, RefusesAMomentumBelowZeroAndABeta2BeyondOne) {
  EXPECT_EQ(refusal("adagrad_momentum", {{"momentum", -0.5}}),
            "adagrad_momentum: momentum must be >= 0, got -0.5");
  EXPECT_EQ(refusal("adagrad_momentum", {{"beta2", 1.5}}),
            "adagrad_momentum: beta2 must be in [0, 1], got 1.5");
}

}  // namespace
}  // namespace embertable
