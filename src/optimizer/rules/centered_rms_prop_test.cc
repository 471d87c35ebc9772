#include <gtest/gtest.h>

#include "testing/rule_rows.h"

namespace embertable {
namespace {

using Floats = std::vector<float>;

const AddReference centered_rms_prop_reference(
    "centered_rms_prop",
    [](const Optimizer& optimizer, double rate, std::int64_t, Numbers& w,
       std::vector<Numbers>& slots, const Numbers& g) {
      const double rho = binary32(optimizer, "rho"), momentum = binary32(optimizer, "momentum");
      const double epsilon = binary32(optimizer, "epsilon");
      for (std::size_t i = 0; i < w.size(); ++i) {
        Bounded &ms = slots[0][i], &mom = slots[1][i], &mg = slots[2][i];
        ms = rho * ms + (1 - rho) * g[i] * g[i];
        mg = rho * mg + (1 - rho) * g[i];
        mom = momentum * mom + rate * g[i] / sqrt(max(ms - mg * mg, 0) + epsilon);
        w[i] -= mom;
      }
    },
    {{{"momentum", 0.9}, {"epsilon", 0.5}}});

Optimizer centered(double rho, double momentum, double epsilon) {
  return Optimizer("centered_rms_prop", 0.1,
                   {{"rho", rho}, {"momentum", momentum}, {"epsilon", epsilon}});
}

TEST(CenteredRmsProp, TwoStepsByHand) {
  TestedRow row(centered(0.5, 0.25, 5), {10, 1});
  // ms = 8, mg = 2: mom = 3 * 4 / sqrt(8 - 4 + 5)
  EXPECT_EQ(row.step(3, {4, 0}), (Floats{6, 1}));
  EXPECT_EQ(row.slot(0), (Floats{8, 0}));
  EXPECT_EQ(row.slot(1), (Floats{4, 0}));
  EXPECT_EQ(row.slot(2), (Floats{2, 0}));
  // ms = 4, 8; mg = 1, 2: mom = 1, 3 * 4 / 3
  EXPECT_EQ(row.step(3, {0, 4}), (Floats{5, -3}));
  EXPECT_EQ(row.slot(0), (Floats{4, 8}));
  EXPECT_EQ(row.slot(1), (Floats{1, 4}));
  EXPECT_EQ(row.slot(2), (Floats{1, 2}));
}

TEST(CenteredRmsProp, ANegativeDifferenceCountsAsZero) {
  for (const SimdLevel level : usable_levels()) {
    TestedRows rows(centered(1, 0, 4), 1, 1);
    *rows.slot(0, 0) = 1;
    *rows.slot(2, 0) = 3;
    rows.update(level, {0}, {{8}}, 1, 1);
    EXPECT_EQ(rows.row_values(0), Floats{-4});  // 8 / sqrt(max(1 - 9, 0) + 4)
  }
}

TEST(CenteredRmsProp, SlotsStartAtZero) {
  TestedRows rows(Optimizer("centered_rms_prop", 0.1), 1, 1);
  EXPECT_EQ(rows.num_slots(), 3);
  const std::string names[] = {"ms", "mom", "mg"};
  for (std::int32_t s = 0; s < 3; ++s) {
    EXPECT_EQ(rows.slot_name(s), names[s]);
    EXPECT_EQ(rows.slot_values(s, 0), Floats{0});
  }
}

TEST(CenteredRmsProp, SaysWhatItRefuses) {
  const std::string rule = "centered_rms_prop";
  EXPECT_EQ(refusal(rule, {{"rho", -0.5}}), rule + ": rho must be in [0, 1], got -0.5");
  EXPECT_EQ(refusal(rule, {{"momentum", 1}}), rule + ": momentum must be in [0, 1), got 1");
  EXPECT_EQ(refusal(rule, {{"epsilon", 0}}), rule + ": epsilon must be > 0, got 0");
}

}  // namespace
}  // namespace embertable
