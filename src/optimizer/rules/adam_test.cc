#include <gtest/gtest.h>

#include <cmath>

#include "testing/rule_rows.h"

namespace embertable {
namespace {

using Floats = std::vector<float>;

const AddReference adam_reference(
    "adam",
    [](const Optimizer& optimizer, double rate, std::int64_t, Numbers& w,
       std::vector<Numbers>& slots, const Numbers& g) {
      const double beta1 = binary32(optimizer, "beta_1"), beta2 = binary32(optimizer, "beta_2");
      const double epsilon = binary32(optimizer, "epsilon");
      const bool inside = optimizer.parameter("sum_inside_sqrt") != 0;
      for (std::size_t i = 0; i < w.size(); ++i) {
        Bounded &m = slots[0][i], &v = slots[1][i];
        m = beta1 * m + (1 - beta1) * g[i];
        v = beta2 * v + (1 - beta2) * g[i] * g[i];
        w[i] -= rate * m / (inside ? sqrt(v + epsilon * epsilon) : sqrt(v) + epsilon);
      }
    },
    {{{"sum_inside_sqrt", false}}, {{"beta_1", 0}, {"beta_2", 0.3}, {"epsilon", 0.5}}});

Optimizer adam(double epsilon, bool sum_inside_sqrt) {
  return Optimizer("adam", 0.1,
                   {{"beta_1", 0.5},
                    {"beta_2", 0.75},
                    {"epsilon", epsilon},
                    {"sum_inside_sqrt", sum_inside_sqrt}});
}

TEST(Adam, TwoStepsByHand) {
  TestedRow row(adam(1.5, true), {10, 1});
  EXPECT_EQ(row.step(5, {4, 0}), (Floats{6, 1}));  // m = 2, v = 4: 5 * 2 / sqrt(4 + 2.25)
  EXPECT_EQ(row.slot(0), (Floats{2, 0}));
  EXPECT_EQ(row.slot(1), (Floats{4, 0}));
  // m = 1 + 1 and 2, v = 3 + 1 and 4.
  EXPECT_EQ(row.step(5, {2, 4}), (Floats{2, -3}));
  EXPECT_EQ(row.slot(0), (Floats{2, 2}));
  EXPECT_EQ(row.slot(1), (Floats{4, 4}));
}

TEST(Adam, EpsilonOutsideTheRootByHand) {
  TestedRow row(adam(1, false), {10});
  EXPECT_EQ(row.step(6, {4}), Floats{6});  // m = 2, v = 4: 6 * 2 / (sqrt(4) + 1)
}

TEST(Adam, MovesByItsMomentaWhereTheGradientIsZero) {
  TestedRow row(adam(1, false), {10});
  row.step(0, {4});
  EXPECT_EQ(row.step(std::sqrt(3.0f) + 1, {0}), Floats{9});  // m = 1, v = 3
  EXPECT_EQ(row.slot(0), Floats{1});
  EXPECT_EQ(row.slot(1), Floats{3});
}

TEST(Adam, MomentaAndVelocitiesStartAtZero) {
  TestedRows rows(Optimizer("adam", 0.1), 1, 2);
  EXPECT_EQ(rows.num_slots(), 2);
  EXPECT_EQ(rows.slot_name(0), "momenta");
  EXPECT_EQ(rows.slot_name(1), "velocities");
  EXPECT_EQ(rows.slot_values(0, 0), (Floats{0, 0}));
  EXPECT_EQ(rows.slot_values(1, 0), (Floats{0, 0}));
}

TEST(Adam, StepsEveryRowIfNotLazy) {
  const Rule& rule = find_rule("adam");
  EXPECT_FALSE(rule.steps_every_row(Optimizer("adam", 0.1)));
  EXPECT_TRUE(rule.steps_every_row(Optimizer("adam", 0.1, {{"lazy_adam", false}})));
}

TEST(Adam, PrintsItsDefaults) {
  EXPECT_EQ(Optimizer("adam", 0.001).to_string(),
            "adam(learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-07, lazy_adam=true, "
            "sum_inside_sqrt=true)");
}

TEST(OptimizerCase, 42_AdamRefusesBetasOutsideZeroToOneAndNoEpsilon) {
  EXPECT_EQ(refusal("adam", {{"beta_1", -0.1}}), "adam: beta_1 must be in [0, 1), got -0.1");
  EXPECT_EQ(refusal("adam", {{"beta_1", 1}}), "adam: beta_1 must be in [0, 1), got 1");
  EXPECT_EQ(refusal("adam", {{"beta_2", -0.1}}), "adam: beta_2 must be in [0, 1), got -0.1");
  EXPECT_EQ(refusal("adam", {{"beta_2", 1}}), "adam: beta_2 must be in [0, 1), got 1");
  EXPECT_EQ(refusal("adam", {{"beta_1", 0}, {"beta_2", 0}}), "");
  EXPECT_EQ(refusal("adam", {{"epsilon", 0}}), "adam: epsilon must be > 0, got 0");
}

TEST(OptimizerCase, 43_AdamThatIsNotLazyNeedsAccumulation) {
  EXPECT_EQ(refusal("adam", {{"lazy_adam", false}}, {.use_gradient_accumulation = false}),
            "adam: lazy_adam must be true where use_gradient_accumulation is false, got false");
  EXPECT_EQ(refusal("adam", {}, {.use_gradient_accumulation = false}), "");
}

}  // namespace
}  // namespace embertable
