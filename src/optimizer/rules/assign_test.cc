#include <gtest/gtest.h>

#include "testing/rule_rows.h"

namespace embertable {
namespace {

using Floats = std::vector<float>;

const AddReference assign_reference("assign",
                                    [](const Optimizer&, double, std::int64_t, Numbers& w,
                                       std::vector<Numbers>&, const Numbers& g) { w = g; });

TEST(Assign, TheRowBecomesTheGradient) {
  TestedRow row(Optimizer("assign", 0.5), {1, -2, 3});
  EXPECT_EQ(row.step(0.5f, {2, 0, -4}), (Floats{2, 0, -4}));
  EXPECT_EQ(row.step(0, {0, 8, 1}), (Floats{0, 8, 1}));
}

TEST(Assign, KeepsNoSlots) { EXPECT_EQ(TestedRows(Optimizer("assign", 0), 1, 4).num_slots(), 0); }

}  // namespace
}  // namespace embertable
