#include <gtest/gtest.h>

#include "testing/rule_rows.h"

namespace embertable {
namespace {

using Floats = std::vector<float>;

const AddReference adagrad_reference("adagrad",
                                     [](const Optimizer&, double rate, std::int64_t, Numbers& w,
                                        std::vector<Numbers>& slots, const Numbers& g) {
                                       for (std::size_t i = 0; i < w.size(); ++i) {
                                         Bounded& a = slots[0][i];
                                         a += g[i] * g[i];
                                         w[i] -= quotient(rate * g[i], sqrt(a));
                                       }
                                     },
                                     {{{"initial_accumulator_value", 1e-30}}});

TEST(Adagrad, TwoStepsByHand) {
  TestedRow row(Optimizer("adagrad", 10, {{"initial_accumulator_value", 7}}), {10, 1});
  EXPECT_EQ(row.step(10, {3, 0}), (Floats{10 - 30 / 4.0f, 1}));  // a = 7 + 9, 7
  EXPECT_EQ(row.slot(0), (Floats{16, 7}));
  EXPECT_EQ(row.step(10, {3, -3}), (Floats{2.5f - 30 / 5.0f, 1 + 30 / 4.0f}));
  EXPECT_EQ(row.slot(0), (Floats{25, 16}));
}

TEST(Adagrad, AccumulatorStartsAtItsParameter) {
  TestedRows rows(Optimizer("adagrad", 0.1), 1, 2);
  EXPECT_EQ(rows.slot_name(0), "accumulators");
  EXPECT_EQ(rows.slot_values(0, 0), (Floats{0.1f, 0.1f}));
}

TEST(Adagrad, ZeroByZeroIsZero) {
  TestedRows zero(Optimizer("adagrad", 1), 1, 1);
  for (const SimdLevel level : usable_levels()) {
    *zero.row(0) = 5;
    *zero.slot(0, 0) = 0;
    zero.update(level, {0}, {{0}}, 1, 1);
    EXPECT_EQ(zero.row_values(0), Floats{5});
  }
}

}  // namespace
}  // namespace embertable
