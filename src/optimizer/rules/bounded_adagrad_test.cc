#include <gtest/gtest.h>

#include "testing/rule_rows.h"

namespace embertable {
namespace {

using Floats = std::vector<float>;

const AddReference bounded_adagrad_reference(
    "bounded_adagrad",
    [](const Optimizer& optimizer, double rate, std::int64_t, Numbers& w,
       std::vector<Numbers>& slots, const Numbers& g) {
      const double most = binary32(optimizer, "max_var_update");
      const double cap = binary32(optimizer, "max_accumulator");
      const bool first = optimizer.parameter("update_accumulator_first") != 0;
      for (std::size_t i = 0; i < w.size(); ++i) {
        Bounded& a = slots[0][i];
        Bounded n = a + g[i] * g[i];
        if (cap > 0) n = min(n, cap);
        Bounded u = quotient(rate * g[i], sqrt(first ? n : a));
        if (most > 0) u = min(max(u, -most), most);
        a = n;
        w[i] -= u;
      }
    },
    {{{"update_accumulator_first", true}},
     {{"max_var_update", 0.01}},
     {{"max_accumulator", 1}, {"update_accumulator_first", true}},
     {{"max_accumulator", 0.5}, {"max_var_update", 0.1}}});

TEST(BoundedAdagrad, TwoStepsByHand) {
  TestedRow row(Optimizer("bounded_adagrad", 1, {{"initial_accumulator_value", 16}}), {10, 1});
  EXPECT_EQ(row.step(8, {3, 0}), (Floats{4, 1}));  // by sqrt(16)
  EXPECT_EQ(row.slot(0), (Floats{25, 16}));
  EXPECT_EQ(row.step(10, {1, -2}), (Floats{2, 6}));  // by 5 and 4
}

TEST(BoundedAdagrad, DividesByTheNewAccumulatorWhereItComesFirst) {
  TestedRow row(Optimizer("bounded_adagrad", 1,
                          {{"initial_accumulator_value", 16}, {"update_accumulator_first", true}}),
                {10});
  EXPECT_EQ(row.step(5, {3}), Floats{7});
}

TEST(BoundedAdagrad, BoundsTheChangeOfTheRowButNotWhatItAccumulates) {
  TestedRow row(
      Optimizer("bounded_adagrad", 1, {{"initial_accumulator_value", 16}, {"max_var_update", 0.5}}),
      {10, 10, 10});
  EXPECT_EQ(row.step(1, {3, -3, 1}), (Floats{9.5f, 10.5f, 9.75f}));
  EXPECT_EQ(row.slot(0), (Floats{25, 25, 17}));
}

TEST(BoundedAdagrad, CapsTheAccumulator) {
  TestedRow row(Optimizer("bounded_adagrad", 1,
                          {{"initial_accumulator_value", 16},
                           {"max_accumulator", 4},
                           {"update_accumulator_first", true}}),
                {10, 10});
  EXPECT_EQ(row.step(1, {3, 0}), (Floats{8.5f, 10}));  // by sqrt(4)
  EXPECT_EQ(row.slot(0), (Floats{4, 4}));
}

TEST(BoundedAdagrad, ZeroByZeroIsZero) {
  TestedRows zero(Optimizer("bounded_adagrad", 1), 1, 1);
  for (const SimdLevel level : usable_levels()) {
    *zero.row(0) = 5;
    *zero.slot(0, 0) = 0;
    zero.update(level, {0}, {{0}}, 1, 1);
    EXPECT_EQ(zero.row_values(0), Floats{5});
  }
}

TEST(BoundedAdagrad, AccumulatorStartsAtItsParameter) {
  TestedRows rows(Optimizer("bounded_adagrad", 0.1), 1, 2);
  EXPECT_EQ(rows.slot_name(0), "accumulators");
  EXPECT_EQ(rows.slot_values(0, 0), (Floats{0.1f, 0.1f}));
}

TEST(BoundedAdagrad, RefusesBoundsBelowZeroAndAnAccumulatorThatIsNotPositive) {
  EXPECT_EQ(refusal("bounded_adagrad", {{"max_var_update", -1}}),
            "bounded_adagrad: max_var_update must be >= 0, got -1");
  EXPECT_EQ(refusal("bounded_adagrad", {{"max_accumulator", -1}}),
            "bounded_adagrad: max_accumulator must be >= 0, got -1");
  EXPECT_EQ(refusal("bounded_adagrad", {{"initial_accumulator_value", 0}}),
            "bounded_adagrad: initial_accumulator_value must be > 0, got 0");
  EXPECT_EQ(refusal("bounded_adagrad", {{"update_accumulator_first", 2}}),
            "bounded_adagrad: update_accumulator_first must be false or true, got 2");
}

}  // namespace
}  // namespace embertable
