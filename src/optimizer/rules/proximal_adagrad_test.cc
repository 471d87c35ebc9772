#include <gtest/gtest.h>

#include "testing/rule_rows.h"

namespace embertable {
namespace {

using Floats = std::vector<float>;

const AddReference proximal_adagrad_reference(
    "proximal_adagrad",
    [](const Optimizer& optimizer, double rate, std::int64_t, Numbers& w,
       std::vector<Numbers>& slots, const Numbers& g) {
      const double l1 = binary32(optimizer, "l1"), l2 = binary32(optimizer, "l2");
      for (std::size_t i = 0; i < w.size(); ++i) {
        Bounded& a = slots[0][i];
        a += g[i] * g[i];
        const Bounded eta = rate / sqrt(a);
        Bounded x = w[i] - eta * g[i];
        if (l1 > 0) x = sign(x) * max(abs(x) - eta * l1, 0);
        w[i] = x / (1 + l2 * eta);
      }
    },
    {{{"l1", 0.1}}, {{"l2", 0.3}}, {{"l1", 0.1}, {"l2", 0.3}, {"initial_accumulator_value", 4}}});

TEST(ProximalAdagrad, TwoStepsByHand) {
  TestedRow row(Optimizer("proximal_adagrad", 1, {{"initial_accumulator_value", 7}}), {10, 1});
  EXPECT_EQ(row.step(2, {3, 0})[0], 8.5f);  // e = 2 / sqrt(7 + 9)
  EXPECT_EQ(row.slot(0), (Floats{16, 7}));
  EXPECT_EQ(row.step(5, {3, 3}), (Floats{5.5f, 1 - 3.75f}));  // e = 5 / 5, 5 / 4
}

TEST(ProximalAdagrad, L1BringsNearerToZeroAndNoFurther) {
  TestedRow row(Optimizer("proximal_adagrad", 1, {{"initial_accumulator_value", 4}, {"l1", 3}}),
                {10, -10, 2, -2});
  EXPECT_EQ(row.step(2, {0, 0, 0, 0}), (Floats{7, -7, 0, 0}));  // e = 1
}

TEST(ProximalAdagrad, L2Divides) {
  TestedRow row(
      Optimizer("proximal_adagrad", 1, {{"initial_accumulator_value", 4}, {"l1", 1}, {"l2", 0.5}}),
      {10, -4});
  EXPECT_EQ(row.step(2, {0, 0}), (Floats{6, -2}));
}

TEST(ProximalAdagrad, AccumulatorStartsAtItsParameter) {
  TestedRows rows(Optimizer("proximal_adagrad", 0.1), 1, 2);
  EXPECT_EQ(rows.slot_name(0), "accumulators");
  EXPECT_EQ(rows.slot_values(0, 0), (Floats{0.1f, 0.1f}));
}

TEST(ProximalAdagrad, RefusesAnAccumulatorThatIsNotPositiveAndStrengthsBelowZero) {
  EXPECT_EQ(refusal("proximal_adagrad", {{"initial_accumulator_value", 0}}),
            "proximal_adagrad: initial_accumulator_value must be > 0, got 0");
  EXPECT_EQ(refusal("proximal_adagrad", {{"l1", -1}}), "proximal_adagrad: l1 must be >= 0, got -1");
  EXPECT_EQ(refusal("proximal_adagrad", {{"l2", -1}}), "proximal_adagrad: l2 must be >= 0, got -1");
}

}  // namespace
}  // namespace embertable
