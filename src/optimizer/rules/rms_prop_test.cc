#include <gtest/gtest.h>

#include "testing/rule_rows.h"

namespace embertable {
namespace {

using Floats = std::vector<float>;

const AddReference rms_prop_reference("rms_prop",
                                      [](const Optimizer& optimizer, double rate, std::int64_t,
                                         Numbers& w, std::vector<Numbers>& slots,
                                         const Numbers& g) {
                                        const double rho = binary32(optimizer, "rho"),
                                                     momentum = binary32(optimizer, "momentum");
                                        const double epsilon = binary32(optimizer, "epsilon");
                                        for (std::size_t i = 0; i < w.size(); ++i) {
                                          Bounded &ms = slots[0][i], &mom = slots[1][i];
                                          ms = rho * ms + (1 - rho) * g[i] * g[i];
                                          mom = momentum * mom + rate * g[i] / sqrt(ms + epsilon);
                                          w[i] -= mom;
                                        }
                                      },
                                      {{{"momentum", 0.9}, {"epsilon", 0.5}}, {{"rho", 0}}});

TEST(RmsProp, TwoStepsByHand) {
  TestedRow row(Optimizer("rms_prop", 0.1, {{"rho", 0.5}, {"momentum", 0.25}, {"epsilon", 1}}),
                {10, 1});
  // ms = 8, 0; mom = 3 * 4 / 3, 0
  EXPECT_EQ(row.step(3, {4, 0}), (Floats{6, 1}));
  EXPECT_EQ(row.slot(0), (Floats{8, 0}));
  EXPECT_EQ(row.slot(1), (Floats{4, 0}));
  // ms = 4, 8; mom = 1 + 0, 0 + 3 * -4 / 3
  EXPECT_EQ(row.step(3, {0, -4}), (Floats{5, 5}));
  EXPECT_EQ(row.slot(0), (Floats{4, 8}));
  EXPECT_EQ(row.slot(1), (Floats{1, -4}));
}

TEST(RmsProp, SlotsStartAtZero) {
  TestedRows rows(Optimizer("rms_prop", 0.1), 1, 1);
  EXPECT_EQ(rows.num_slots(), 2);
  EXPECT_EQ(rows.slot_name(0), "ms");
  EXPECT_EQ(rows.slot_name(1), "mom");
  EXPECT_EQ(rows.slot_values(0, 0), Floats{0});
  EXPECT_EQ(rows.slot_values(1, 0), Floats{0});
}

TEST(RmsProp, SaysWhatItRefuses) {
  EXPECT_EQ(refusal("rms_prop", {{"rho", 1.5}}), "rms_prop: rho must be in [0, 1], got 1.5");
  EXPECT_EQ(refusal("rms_prop", {{"momentum", 1}}), "rms_prop: momentum must be in [0, 1), got 1");
  EXPECT_EQ(refusal("rms_prop", {{"epsilon", 0}}), "rms_prop: epsilon must be > 0, got 0");
}

}  // namespace
}  // namespace embertable
