#include <gtest/gtest.h>

#include "testing/rule_rows.h"

namespace embertable {
namespace {

using Floats = std::vector<float>;

const AddReference sgd_reference("sgd", [](const Optimizer&, double rate, std::int64_t, Numbers& w,
                                           std::vector<Numbers>&, const Numbers& g) {
  for (std::size_t i = 0; i < w.size(); ++i) w[i] -= rate * g[i];
});

TEST(Sgd, TwoStepsByHand) {
  TestedRow row(Optimizer("sgd", 0.5), {1, -2, 3});
  EXPECT_EQ(row.step(0.5f, {2, 0, -4}), (Floats{0, -2, 5}));
  EXPECT_EQ(row.step(0.25f, {4, 8, 4}), (Floats{-1, -4, 4}));
}

TEST(Sgd, KeepsNoSlots) { EXPECT_EQ(TestedRows(Optimizer("sgd", 0.5), 1, 4).num_slots(), 0); }

TEST(Sgd, RoundsTheProductBeforeTheDifference) {
  // (1 + 2^-12)^2 = 1 + 2^-11 + 2^-24 rounds to 1 + 2^-11; contracted, 2^-24 would be left.
  const float x = 1 + 0x1p-12f;
  TestedRow row(Optimizer("sgd", 1), {1 + 0x1p-11f});
  EXPECT_EQ(row.step(x, {x}), Floats{0});
}

}  // namespace
}  // namespace embertable
