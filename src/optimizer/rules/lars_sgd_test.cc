#include <gtest/gtest.h>

#include <cmath>

#include "testing/rule_rows.h"

namespace embertable {
namespace {

using Floats = std::vector<float>;

double norm(const std::vector<double>& x) {
  double squares = 0;
  for (const double element : x) squares += element * element;
  return std::sqrt(squares);
}

const AddReference lars_sgd_reference(
    "lars_sgd",
    [](const Optimizer& optimizer, double rate, std::int64_t, std::vector<double>& w,
       std::vector<std::vector<double>>& slots, const std::vector<double>& g) {
      const double momentum = binary32(optimizer, "momentum"), eta = binary32(optimizer, "eta");
      const double decay = binary32(optimizer, "weight_decay");
      const double divisor = norm(g) + decay * norm(w);
      const double local = divisor == 0 ? 0 : rate * eta * norm(w) / divisor;
      for (std::size_t i = 0; i < w.size(); ++i) {
        double& m = slots[0][i];
        m = momentum * m + local * (g[i] + decay * w[i]);
        w[i] -= m;
      }
    },
    {{{"weight_decay", 0.125}}, {{"momentum", 0}}});

Optimizer lars(double eta, double decay) {
  return Optimizer("lars_sgd", 0.1, {{"momentum", 0.5}, {"eta", eta}, {"weight_decay", decay}});
}

TEST(LarsSgd, TwoStepsByHand) {
  TestedRow row(lars(0.5, 0), {3, 4});
  EXPECT_EQ(row.step(4, {6, 8}), (Floats{-3, -4}));  // r = 4 * 0.5 * 5 / 10
  EXPECT_EQ(row.slot(0), (Floats{6, 8}));
  EXPECT_EQ(row.step(1, {0, 5}), (Floats{-6, -10.5f}));  // r = 0.5: m = 3, 4 + 2.5
  EXPECT_EQ(row.slot(0), (Floats{3, 6.5f}));
}

TEST(LarsSgd, DecayIsPartOfTheGradient) {
  TestedRow row(lars(1, 1), {3, 4});
  EXPECT_EQ(row.step(3, {6, 8}), (Floats{-6, -8}));  // r = 3 * 5 / (10 + 5): m = 9, 12
}

TEST(LarsSgd, WithoutGradientOnlyMomentaMoveTheRow) {
  TestedRow row(lars(0.5, 0), {3, 4});
  row.step(4, {6, 8});
  EXPECT_EQ(row.step(4, {0, 0}), (Floats{-6, -8}));
  EXPECT_EQ(row.slot(0), (Floats{3, 4}));
}

TEST(LarsSgd, ARowOfZerosDoesNotMove) {
  TestedRow row(lars(1, 1), {0, 0});
  EXPECT_EQ(row.step(1, {3, 4}), (Floats{0, 0}));
  EXPECT_EQ(row.step(1, {0, 0}), (Floats{0, 0}));
}

TEST(LarsSgd, MomentaStartAtZero) {
  TestedRows rows(Optimizer("lars_sgd", 0.1), 1, 2);
  EXPECT_EQ(rows.num_slots(), 1);
  EXPECT_EQ(rows.slot_name(0), "momenta");
  EXPECT_EQ(rows.slot_values(0, 0), (Floats{0, 0}));
}

TEST(LarsSgd, SaysWhatItRefuses) {
  EXPECT_EQ(refusal("lars_sgd", {{"momentum", 1}}), "lars_sgd: momentum must be in [0, 1), got 1");
  EXPECT_EQ(refusal("lars_sgd", {{"eta", -1}}), "lars_sgd: eta must be >= 0, got -1");
  EXPECT_EQ(refusal("lars_sgd", {{"weight_decay", -1}}),
            "lars_sgd: weight_decay must be >= 0, got -1");
  EXPECT_EQ(refusal("lars_sgd", {}, {.weight_decay_factor = 0.5}),
            "lars_sgd: weight_decay_factor must be 0, since weight_decay is the rule's own decay, "
            "got 0.5");
}

}  // namespace
}  // namespace embertable
