#include <gtest/gtest.h>

#include "testing/rule_rows.h"

namespace embertable {
namespace {

using Floats = std::vector<float>;

const AddReference adadelta_reference("adadelta",
                                      [](const Optimizer& optimizer, double rate, std::int64_t,
                                         Numbers& w, std::vector<Numbers>& slots,
                                         const Numbers& g) {
                                        const double rho = binary32(optimizer, "rho"),
                                                     epsilon = binary32(optimizer, "epsilon");
                                        for (std::size_t i = 0; i < w.size(); ++i) {
                                          Bounded &a = slots[0][i], &up = slots[1][i];
                                          a = rho * a + (1 - rho) * g[i] * g[i];
                                          const Bounded u =
                                              sqrt(up + epsilon) / sqrt(a + epsilon) * g[i];
                                          w[i] -= rate * u;
                                          up = rho * up + (1 - rho) * u * u;
                                        }
                                      },
                                      {{{"rho", 0.3}, {"epsilon", 0.5}}});

TEST(Adadelta, TwoStepsByHand) {
  for (const SimdLevel level : usable_levels()) {
    TestedRows rows(Optimizer("adadelta", 0.1, {{"rho", 0.5}, {"epsilon", 1}}), 1, 1);
    *rows.slot(0, 0) = 14;
    *rows.slot(1, 0) = 3;
    rows.update(level, {0}, {{4}}, 3, 1);  // a = 7 + 8, u = 2 / 4 * 4
    EXPECT_EQ(rows.row_values(0), Floats{-6});
    EXPECT_EQ(rows.slot_values(0, 0), Floats{15});
    EXPECT_EQ(rows.slot_values(1, 0), Floats{1.5f + 0.5f * 4});
    rows.update(level, {0}, {{0}}, 3, 2);
    EXPECT_EQ(rows.row_values(0), Floats{-6});
    EXPECT_EQ(rows.slot_values(0, 0), Floats{7.5f});
    EXPECT_EQ(rows.slot_values(1, 0), Floats{1.75f});
  }
}

TEST(Adadelta, AccumulatorsAndUpdatesStartAtZero) {
  TestedRows rows(Optimizer("adadelta", 0.1), 1, 1);
  EXPECT_EQ(rows.num_slots(), 2);
  EXPECT_EQ(rows.slot_name(0), "accumulators");
  EXPECT_EQ(rows.slot_name(1), "updates");
  EXPECT_EQ(rows.slot_values(0, 0), Floats{0});
  EXPECT_EQ(rows.slot_values(1, 0), Floats{0});
}

TEST(Adadelta, SaysWhatItRefuses) {
  EXPECT_EQ(refusal("adadelta", {{"rho", 1.5}}), "adadelta: rho must be in [0, 1], got 1.5");
  EXPECT_EQ(refusal("adadelta", {{"epsilon", 0}}), "adadelta: epsilon must be > 0, got 0");
}

}  // namespace
}  // namespace embertable
