#include <gtest/gtest.h>

#include "testing/rule_rows.h"

namespace embertable {
namespace {

using Floats = std::vector<float>;

const AddReference proximal_yogi_reference(
    "proximal_yogi",
    [](const Optimizer& optimizer, double rate, std::int64_t, Numbers& w,
       std::vector<Numbers>& slots, const Numbers& g) {
      const double l1 = binary32(optimizer, "l1"), l2 = binary32(optimizer, "l2");
      const Bounded beta1 = binary32(optimizer, "beta1"), beta2 = binary32(optimizer, "beta2");
      for (std::size_t i = 0; i < w.size(); ++i) {
        Bounded &v = slots[0][i], &m = slots[1][i];
        const Bounded square = g[i] * g[i];
        m = beta1 * m + (1 - beta1) * g[i];
        v = v + (1 - beta2) * sign(square - v) * square;
        const Bounded eta = rate / (sqrt(v) + binary32(optimizer, "epsilon"));
        Bounded x = w[i] - eta * m;
        if (l1 > 0) x = sign(x) * max(abs(x) - l1 * eta, 0);
        w[i] = x / (1 + l2 * eta);
      }
    },
    {{{"l1", 0.1}, {"l2", 0.2}},
     {{"l2", 0.2}, {"beta1", 0}},
     {{"l1", 0.1}, {"beta2", 0.5}, {"initial_accumulator_value", 0}, {"epsilon", 0.5}}});

Optimizer proximal_yogi(const Optimizer::Settings& settings) {
  Optimizer::Settings all = settings;
  for (const char* name : {"beta1", "beta2"}) all.emplace_back(name, 0.5);
  all.emplace_back("initial_accumulator_value", 1);
  all.emplace_back("epsilon", 1);
  return Optimizer("proximal_yogi", 1, all);
}

TEST(ProximalYogi, TwoStepsByHand) {
  TestedRow row(proximal_yogi({}), {10, 1});
  EXPECT_EQ(row.step(4, {4, 0}), (Floats{8, 1}));  // v = 1 + 8, m = 2, e = 4 / (3 + 1)
  EXPECT_EQ(row.slot(0), (Floats{9, 1}));
  EXPECT_EQ(row.slot(1), (Floats{2, 0}));
  EXPECT_EQ(row.step(4, {0, 0}), (Floats{7, 1}));  // m = 1
}

TEST(ProximalYogi, SecondMomentComesNearerToTheSquareByAShareOfTheSquare) {
  TestedRow row(proximal_yogi({{"l2", 0}}), {0, 0, 0});
  row.step(1, {0.5f, 3, 1});
  EXPECT_EQ(row.slot(0), (Floats{1 - 0.125f, 1 + 4.5f, 1}));  // equal moments stay
}

TEST(ProximalYogi, L1BringsNearerToZeroAndL2Divides) {
  TestedRow l1(proximal_yogi({{"l1", 1}}), {10, -10, 1, -1});
  EXPECT_EQ(l1.step(4, {0, 0, 0, 0}), (Floats{8, -8, 0, 0}));  // e = 2
  TestedRow l2(proximal_yogi({{"l2", 0.5}}), {10, -10});
  EXPECT_EQ(l2.step(4, {0, 0}), (Floats{5, -5}));
  TestedRow both(proximal_yogi({{"l1", 1}, {"l2", 0.5}}), {10, -10});
  EXPECT_EQ(both.step(4, {0, 0}), (Floats{4, -4}));
}

TEST(ProximalYogi, SlotsAreVThatStartsAtItsParameterAndM) {
  TestedRows rows(Optimizer("proximal_yogi", 0.1), 1, 2);
  EXPECT_EQ(rows.slot_name(0), "v");
  EXPECT_EQ(rows.slot_values(0, 0), (Floats{1e-6f, 1e-6f}));
  EXPECT_EQ(rows.slot_name(1), "m");
  EXPECT_EQ(rows.slot_values(1, 0), (Floats{0, 0}));
}

TEST(OptimizerCase, 45_ProximalYogiRefusesABetaOfOneAndAnEpsilonOfZero) {
  EXPECT_EQ(refusal("proximal_yogi", {{"beta1", 1}}),
            "proximal_yogi: beta1 must be in [0, 1), got 1");
  EXPECT_EQ(refusal("proximal_yogi", {{"epsilon", 0}}),
            "proximal_yogi: epsilon must be > 0, got 0");
}

TEST(ProximalYogi, SaysWhichParameterBreaksWhichRange) {
  EXPECT_EQ(refusal("proximal_yogi", {{"beta2", 1}}),
            "proximal_yogi: beta2 must be in [0, 1), got 1");
  EXPECT_EQ(refusal("proximal_yogi", {{"l1", -1}}), "proximal_yogi: l1 must be >= 0, got -1");
  EXPECT_EQ(refusal("proximal_yogi", {{"l2", -1}}), "proximal_yogi: l2 must be >= 0, got -1");
  EXPECT_EQ(refusal("proximal_yogi", {{"initial_accumulator_value", -1}}),
            "proximal_yogi: initial_accumulator_value must be >= 0, got -1");
}

}  // namespace
}  // namespace embertable
