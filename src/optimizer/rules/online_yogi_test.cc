#include <gtest/gtest.h>

#include "testing/rule_rows.h"

namespace embertable {
namespace {

using Floats = std::vector<float>;

const AddReference online_yogi_reference(
    "online_yogi",
    [](const Optimizer& optimizer, double rate, std::int64_t, Numbers& w,
       std::vector<Numbers>& slots, const Numbers& g) {
      const double l1 = binary32(optimizer, "l1"), l2 = binary32(optimizer, "l2");
      const Bounded rest = 1 - Bounded(binary32(optimizer, "beta2"));
      for (std::size_t i = 0; i < w.size(); ++i) {
        Bounded &v = slots[0][i], &z = slots[1][i];
        const Bounded square = g[i] * g[i], before = sqrt(v);
        v = v + rest * if_at_least(square, v, 1, -1) * square;
        const Bounded root = sqrt(v);
        z = z + g[i] - (root - before) / rate * w[i];
        w[i] = quotient(min(max(z, -l1), l1) - z, root / rate + Bounded(2) * l2);
      }
    },
    {{{"l1", 0.1}, {"l2", 0.2}}, {{"beta2", 0.5}}, {{"beta2", 0}, {"l2", 0.3}}});

Optimizer online_yogi(const Optimizer::Settings& settings) {
  Optimizer::Settings all = settings;
  all.emplace_back("initial_accumulator_value", 9);
  all.emplace_back("beta2", 0.5);
  return Optimizer("online_yogi", 0.5, all);
}

TEST(OnlineYogi, TwoStepsByHand) {
  TestedRow row(Optimizer("online_yogi", 0.5, {{"initial_accumulator_value", 9}, {"beta2", 0}}),
                {2, 0});
  EXPECT_EQ(row.step(0.5f, {4, 0}), (Floats{0.4f, 0}));  // v = 25, z = 4 - (5-3) / 0.5 * 2, D = 10
  EXPECT_EQ(row.slot(0), (Floats{25, 9}));
  EXPECT_EQ(row.slot(1), (Floats{-4, 0}));
  EXPECT_EQ(row.step(0.5f, {0, 0}), (Floats{0.4f, 0}));  // consistent: stays
}

TEST(OnlineYogi, SecondMomentComesNearerToTheSquareByAShareOfTheSquare) {
  TestedRow row(online_yogi({}), {0, 0, 0, 0});
  row.step(0.5f, {2, 4, 3, 0});
  EXPECT_EQ(row.slot(0), (Floats{9 - 2, 9 + 8, 9 + 4.5f, 9}));  // equal moments grow
}

TEST(OnlineYogi, L1SetsToZeroWhatIsNearAndL2GrowsTheDenominator) {
  TestedRow l1(online_yogi({{"l1", 2}}), {0, 0});
  EXPECT_EQ(l1.step(0.5f, {2, 0}), (Floats{0, 0}));
  TestedRow l2(Optimizer("online_yogi", 0.5,
                         {{"initial_accumulator_value", 9}, {"beta2", 0}, {"l1", 1}, {"l2", 3}}),
               {0});
  EXPECT_EQ(l2.step(0.5f, {4}), Floats{-3 / 16.0f});  // (1 - 4) / (5 / 0.5 + 2 * 3)
}

TEST(OnlineYogi, SlotsAreVsThatStartAtTheirParameterAndLinears) {
  TestedRows rows(Optimizer("online_yogi", 0.1), 1, 2);
  EXPECT_EQ(rows.slot_name(0), "vs");
  EXPECT_EQ(rows.slot_values(0, 0), (Floats{0.1f, 0.1f}));
  EXPECT_EQ(rows.slot_name(1), "linears");
  EXPECT_EQ(rows.slot_values(1, 0), (Floats{0, 0}));
}

TEST(OnlineYogi, SaysWhichParameterBreaksWhichRange) {
  EXPECT_EQ(refusal("online_yogi", {{"l1", -1}}), "online_yogi: l1 must be >= 0, got -1");
  EXPECT_EQ(refusal("online_yogi", {{"l2", -1}}), "online_yogi: l2 must be >= 0, got -1");
  EXPECT_EQ(refusal("online_yogi", {{"beta2", 1}}), "online_yogi: beta2 must be in [0, 1), got 1");
  EXPECT_EQ(refusal("online_yogi", {{"initial_accumulator_value", 0}}),
            "online_yogi: initial_accumulator_value must be > 0, got 0");
}

}  // namespace
}  // namespace embertable
