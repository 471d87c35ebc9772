#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "testing/rule_rows.h"

namespace embertable {
namespace {

using Floats = std::vector<float>;

const AddReference adamw_reference(
    "adamw",
    [](const Optimizer& optimizer, double rate, std::int64_t t, Numbers& w,
       std::vector<Numbers>& slots, const Numbers& g) {
      const double beta1 = binary32(optimizer, "beta1"), beta2 = binary32(optimizer, "beta2");
      const double epsilon = binary32(optimizer, "epsilon");
      const double decay = binary32(optimizer, "weight_decay");
      auto updates = static_cast<double>(t);
      if (slots.size() > 2) {
        slots[2][0] += 1;
        const double count = static_cast<float>(slots[2][0].value());
        updates = std::clamp(std::trunc(count), 1.0, 0x1p24);
      }
      for (std::size_t i = 0; i < w.size(); ++i) {
        Bounded &m = slots[0][i], &v = slots[1][i];
        m = beta1 * m + (1 - beta1) * g[i];
        v = beta2 * v + (1 - beta2) * g[i] * g[i];
        const Bounded mean = m / (1 - std::pow(beta1, updates));
        const Bounded square = v / (1 - std::pow(beta2, updates));
        w[i] -= rate * mean / (sqrt(square) + epsilon) + rate * decay * w[i];
      }
    },
    {{{"weight_decay", 0.125}}, {{"use_rowwise_bias_correction", true}}});

Optimizer adamw(double beta2, double epsilon, double decay, bool by_row = false) {
  return Optimizer("adamw", 0.1,
                   {{"beta1", 0.5},
                    {"beta2", beta2},
                    {"epsilon", epsilon},
                    {"weight_decay", decay},
                    {"use_rowwise_bias_correction", by_row}});
}

TEST(AdamW, TwoStepsByHand) {
  TestedRow row(adamw(0, 2, 0.25), {8, 0});
  // m = 2, v = 16, corrected 4 and 16: 3 * 4 / (4 + 2), and 1 - 3 * 0.25 of the row.
  EXPECT_EQ(row.step(3, {4, 0}), (Floats{0, 0}));
  EXPECT_EQ(row.slot(0), (Floats{2, 0}));
  EXPECT_EQ(row.slot(1), (Floats{16, 0}));
  // m = 3 and 2, corrected by 1 - 0.5 * 0.5.
  EXPECT_EQ(row.step(3, {4, 4}), (Floats{-2, -4 / 3.0f}));
  EXPECT_EQ(row.slot(0), (Floats{3, 2}));
  EXPECT_EQ(row.slot(1), (Floats{16, 16}));
}

TEST(AdamW, CorrectsVelocitiesUnderTheRoot) {
  TestedRow row(adamw(0.75, 2, 0), {8});
  // m = 2, v = 4, corrected 4 and 16: 3 * 4 / (4 + 2).
  EXPECT_EQ(row.step(3, {4}), Floats{6});
}

TEST(AdamW, RowCountersTakeThePlaceOfTheStep) {
  for (const SimdLevel level : usable_levels()) {
    TestedRows rows(adamw(0, 2, 0, true), 2, 1);
    rows.update(level, {1}, {{4}}, 3, 7);  // takes the first of two steps
    EXPECT_EQ(rows.row_values(1), Floats{-2});
    EXPECT_EQ(rows.slot_values(2, 1), Floats{1});
    rows.update(level, {0, 1}, {{4}, {4}}, 3, 9);
    EXPECT_EQ(rows.row_values(0), Floats{-2});
    EXPECT_EQ(rows.row_values(1), Floats{-4});
    EXPECT_EQ(rows.slot_values(2, 0), Floats{1});
    EXPECT_EQ(rows.slot_values(2, 1), Floats{2});
  }
}

TEST(AdamW, RowCountersGiveTheBitsOfStepsThatEveryRowTakes) {
  const Optimizer counting("adamw", 0.1,
                           {{"weight_decay", 0.0625}, {"use_rowwise_bias_correction", true}});
  const Optimizer plain("adamw", 0.1, {{"weight_decay", 0.0625}});
  const Floats start = {1, -2, 3}, gradient = {0.125f, 0.3f, -7};
  TestedRow one(counting, start), other(plain, start);
  for (int step = 0; step < 100; ++step)
    ASSERT_EQ(one.step(0.01f, gradient), other.step(0.01f, gradient)) << step;
  EXPECT_EQ(one.slot(2), Floats{100});
}

TEST(AdamW, SlotsStartAtZero) {
  TestedRows rows(adamw(0.5, 1, 0), 1, 2);
  EXPECT_EQ(rows.num_slots(), 2);
  EXPECT_EQ(rows.slot_name(0), "momenta");
  EXPECT_EQ(rows.slot_name(1), "velocities");
  EXPECT_EQ(rows.slot_values(0, 0), (Floats{0, 0}));
  EXPECT_EQ(rows.slot_values(1, 0), (Floats{0, 0}));

  TestedRows counting(adamw(0.5, 1, 0, true), 1, 2);
  EXPECT_EQ(counting.num_slots(), 3);
  EXPECT_EQ(counting.slot_name(2), "row_counters");
  EXPECT_EQ(counting.slot_values(2, 0), Floats{0});
}

TEST(AdamW, SaysWhatItRefuses) {
  EXPECT_EQ(refusal("adamw", {{"beta1", 1}}), "adamw: beta1 must be in [0, 1), got 1");
  EXPECT_EQ(refusal("adamw", {{"beta2", -1}}), "adamw: beta2 must be in [0, 1), got -1");
  EXPECT_EQ(refusal("adamw", {{"epsilon", 0}}), "adamw: epsilon must be > 0, got 0");
  EXPECT_EQ(refusal("adamw", {{"weight_decay", -1}}), "adamw: weight_decay must be >= 0, got -1");
  EXPECT_EQ(refusal("adamw", {}, {.weight_decay_factor = 0.5}),
            "adamw: weight_decay_factor must be 0, since weight_decay is the rule's own decay, got "
            "0.5");
}

}  // namespace
}  // namespace embertable
