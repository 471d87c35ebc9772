#include <gtest/gtest.h>

#include "testing/rule_rows.h"

namespace embertable {
namespace {

using Floats = std::vector<float>;

const AddReference frequency_estimator_reference(
    "frequency_estimator",
    [](const Optimizer& optimizer, double now, std::int64_t, Numbers& w,
       std::vector<Numbers>& slots, const Numbers&) {
      const Bounded tau = binary32(optimizer, "tau");
      const Bounded delta = now - slots[0][0];
      const Bounded most = min(delta, binary32(optimizer, "max_delta"));
      w[0] = if_at_least(delta, binary32(optimizer, "outlier_threshold") * w[0], most,
                         w[0] * (1 - tau) + most * tau);
      slots[0][0] = now;
    },
    {{{"tau", 0.5}, {"max_delta", 1}, {"outlier_threshold", 2}}, {{"outlier_threshold", 0}}});

Optimizer frequency_estimator() {
  return Optimizer("frequency_estimator", 1,
                   {{"tau", 0.25}, {"max_delta", 10}, {"outlier_threshold", 2}});
}

TEST(FrequencyEstimator, BlendsTheStepsSinceTheLastHit) {
  TestedRow row(frequency_estimator(), {10});
  EXPECT_EQ(row.step(6, {0}), Floats{9});  // 10 * 0.75 + 6 * 0.25
  EXPECT_EQ(row.slot(0), Floats{6});
  EXPECT_EQ(row.step(7, {0}), Floats{7});  // 9 * 0.75 + 1 * 0.25
  EXPECT_EQ(row.slot(0), Floats{7});
}

TEST(FrequencyEstimator, CountsAtMostMaxDelta) {
  TestedRow row(frequency_estimator(), {10});
  EXPECT_EQ(row.step(18, {0}), Floats{10});
}

TEST(FrequencyEstimator, TakesAnOutlierAsItIs) {
  TestedRow row(frequency_estimator(), {4});
  EXPECT_EQ(row.step(8, {0}), Floats{8});  // 8 >= 2 * 4
  TestedRow clipped(frequency_estimator(), {9});
  EXPECT_EQ(clipped.step(18, {0}), Floats{10});  // by the difference before it is clipped
}

TEST(FrequencyEstimator, DoesNotReadTheGradient) {
  TestedRow row(frequency_estimator(), {10});
  EXPECT_EQ(row.step(6, {std::nanf("")}), Floats{9});
}

TEST(FrequencyEstimator, SlotIsTheLastStepThatHit) {
  TestedRows rows(Optimizer("frequency_estimator", 1), 1, 1);
  EXPECT_EQ(rows.slot_name(0), "last_hit_step");
  EXPECT_EQ(rows.slot_values(0, 0), Floats{0});
}

TEST(OptimizerCase, 46_FrequencyEstimatorRefusesRowsOfTwo) {
  const Rule& rule = find_rule("frequency_estimator");
  rule.check_dim(1);
  try {
    rule.check_dim(2);
    FAIL() << "two columns are taken";
  } catch (const ValueError& error) {
    EXPECT_STREQ(error.what(), "frequency_estimator: dim must be 1, got 2");
  }
}

TEST(FrequencyEstimator, SaysWhichParameterBreaksWhichRange) {
  const std::string rule = "frequency_estimator: ";
  EXPECT_EQ(refusal("frequency_estimator", {{"tau", 0}}), rule + "tau must be in (0, 1), got 0");
  EXPECT_EQ(refusal("frequency_estimator", {{"tau", 1}}), rule + "tau must be in (0, 1), got 1");
  EXPECT_EQ(refusal("frequency_estimator", {{"max_delta", 0}}),
            rule + "max_delta must be > 0, got 0");
  EXPECT_EQ(refusal("frequency_estimator", {{"outlier_threshold", -1}}),
            rule + "outlier_threshold must be >= 0, got -1");
}

}  // namespace
}  // namespace embertable
