#include <gtest/gtest.h>

#include "testing/rule_rows.h"

namespace embertable {
namespace {

using Floats = std::vector<float>;

const AddReference lion_reference("lion",
                                  [](const Optimizer& optimizer, double rate, std::int64_t,
                                     Numbers& w, std::vector<Numbers>& slots, const Numbers& g) {
                                    const double beta1 = binary32(optimizer, "beta1"),
                                                 beta2 = binary32(optimizer, "beta2");
                                    for (std::size_t i = 0; i < w.size(); ++i) {
                                      Bounded& m = slots[0][i];
                                      w[i] -= rate * sign(beta1 * m + (1 - beta1) * g[i]);
                                      m = beta2 * m + (1 - beta2) * g[i];
                                    }
                                  },
                                  {{{"beta1", 0}, {"beta2", 0.3}}});

TEST(Lion, TwoStepsByHand) {
  TestedRow row(Optimizer("lion", 0.1, {{"beta1", 0.75}, {"beta2", 0.5}}), {1, 2, 3});
  EXPECT_EQ(row.step(0.5f, {4, -8, 0}), (Floats{0.5f, 2.5f, 3}));
  EXPECT_EQ(row.slot(0), (Floats{2, -4, 0}));
  // Directions 1.5 - 1.5, -3 + 2 and 0.75.
  EXPECT_EQ(row.step(0.5f, {-6, 8, 3}), (Floats{0.5f, 3, 2.5f}));
  EXPECT_EQ(row.slot(0), (Floats{-2, 2, 1.5f}));
}

TEST(Lion, MomentaStartAtZero) {
  TestedRows rows(Optimizer("lion", 0.1), 1, 2);
  EXPECT_EQ(rows.num_slots(), 1);
  EXPECT_EQ(rows.slot_name(0), "momenta");
  EXPECT_EQ(rows.slot_values(0, 0), (Floats{0, 0}));
}

TEST(Lion, StepsEveryRowIfNotLazy) {
  const Rule& rule = find_rule("lion");
  EXPECT_FALSE(rule.steps_every_row(Optimizer("lion", 0.1)));
  EXPECT_TRUE(rule.steps_every_row(Optimizer("lion", 0.1, {{"use_non_lazy_lion", true}})));
}

TEST(Lion, SaysWhatItRefuses) {
  EXPECT_EQ(refusal("lion", {{"beta1", 1}}), "lion: beta1 must be in [0, 1), got 1");
  EXPECT_EQ(refusal("lion", {{"beta2", -0.5}}), "lion: beta2 must be in [0, 1), got -0.5");
  EXPECT_EQ(refusal("lion", {{"use_non_lazy_lion", true}}, {.use_gradient_accumulation = false}),
            "lion: use_non_lazy_lion must be false where use_gradient_accumulation is false, got "
            "true");
}

}  // namespace
}  // namespace embertable
