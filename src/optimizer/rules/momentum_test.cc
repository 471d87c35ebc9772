#include <gtest/gtest.h>

#include "testing/rule_rows.h"

namespace embertable {
namespace {

using Floats = std::vector<float>;

const AddReference momentum_reference("momentum",
                                      [](const Optimizer& optimizer, double rate, std::int64_t,
                                         Numbers& w, std::vector<Numbers>& slots,
                                         const Numbers& g) {
                                        const double momentum = binary32(optimizer, "momentum");
                                        const bool nesterov =
                                            optimizer.parameter("use_nesterov") != 0;
                                        for (std::size_t i = 0; i < w.size(); ++i) {
                                          Bounded& m = slots[0][i];
                                          m = momentum * m + g[i];
                                          w[i] -= nesterov ? rate * g[i] + rate * momentum * m
                                                           : rate * m;
                                        }
                                      },
                                      {{{"use_nesterov", true}}, {{"momentum", 0}}});

TEST(Momentum, TwoStepsByHand) {
  TestedRow row(Optimizer("momentum", 0.1, {{"momentum", 0.5}}), {1, 2});
  EXPECT_EQ(row.step(0.25f, {4, 8}), (Floats{0, 0}));
  EXPECT_EQ(row.slot(0), (Floats{4, 8}));
  EXPECT_EQ(row.step(0.5f, {0, -4}), (Floats{-1, 0}));  // m = 2, 4 - 4
  EXPECT_EQ(row.slot(0), (Floats{2, 0}));
}

TEST(Momentum, NesterovLooksAhead) {
  TestedRow row(Optimizer("momentum", 0.1, {{"momentum", 0.5}, {"use_nesterov", true}}), {1});
  EXPECT_EQ(row.step(0.25f, {4}), Floats{-0.5f});  // m = 4: 0.25 * 4 + 0.25 * 0.5 * 4
  EXPECT_EQ(row.step(0.5f, {2}), Floats{-2.5f});   // m = 4: 0.5 * 2 + 0.5 * 0.5 * 4
  EXPECT_EQ(row.slot(0), Floats{4});
}

TEST(Momentum, MomentaStartAtZero) {
  TestedRows rows(Optimizer("momentum", 0.1), 1, 2);
  EXPECT_EQ(rows.num_slots(), 1);
  EXPECT_EQ(rows.slot_name(0), "momenta");
  EXPECT_EQ(rows.slot_values(0, 0), (Floats{0, 0}));
}

TEST(Momentum, SaysWhatItRefuses) {
  EXPECT_EQ(refusal("momentum", {{"momentum", 1}}), "momentum: momentum must be in [0, 1), got 1");
  EXPECT_EQ(refusal("momentum", {{"use_nesterov", 0.5}}),
            "momentum: use_nesterov must be false or true, got 0.5");
}

}  // namespace
}  // namespace embertable
