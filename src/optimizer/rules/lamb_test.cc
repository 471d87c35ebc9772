#include <gtest/gtest.h>

#include <cmath>

#include "testing/rule_rows.h"

namespace embertable {
namespace {

using Floats = std::vector<float>;

const AddReference lamb_reference(
    "lamb",
    [](const Optimizer& optimizer, double rate, std::int64_t t, std::vector<double>& w,
       std::vector<std::vector<double>>& slots, const std::vector<double>& g) {
      const double beta1 = binary32(optimizer, "beta1"), beta2 = binary32(optimizer, "beta2");
      std::vector<double> x(w.size());
      double row_squares = 0, squares = 0;
      for (std::size_t i = 0; i < w.size(); ++i) {
        double &m = slots[0][i], &v = slots[1][i];
        m = beta1 * m + (1 - beta1) * g[i];
        v = beta2 * v + (1 - beta2) * g[i] * g[i];
        const double mean = m / (1 - std::pow(beta1, static_cast<double>(t)));
        const double square = v / (1 - std::pow(beta2, static_cast<double>(t)));
        x[i] = mean / (std::sqrt(square) + binary32(optimizer, "epsilon")) +
               binary32(optimizer, "weight_decay") * w[i];
        row_squares += w[i] * w[i];
        squares += x[i] * x[i];
      }
      for (std::size_t i = 0; i < w.size() && squares != 0; ++i)
        w[i] -= rate * std::sqrt(row_squares / squares) * x[i];
    },
    {{{"weight_decay", 0.125}}});

Optimizer lamb(double beta1, double epsilon, double decay) {
  return Optimizer("lamb", 0.1,
                   {{"beta1", beta1}, {"beta2", 0}, {"epsilon", epsilon}, {"weight_decay", decay}});
}

TEST(Lamb, TwoStepsByHand) {
  TestedRow row(lamb(0, 5, 0), {6, 8});
  // x = 3 / 8, 5 / 10; its norm 5 / 8, the row's 10: the row less 0.25 * 16 * x.
  EXPECT_EQ(row.step(0.25f, {3, 5}), (Floats{4.5f, 6}));
  EXPECT_EQ(row.slot(0), (Floats{3, 5}));
  EXPECT_EQ(row.slot(1), (Floats{9, 25}));
  EXPECT_EQ(row.step(0.25f, {5, 3}), (Floats{3, 4.875f}));  // 7.5 / (5 / 8) = 12
  EXPECT_EQ(row.slot(0), (Floats{5, 3}));
  EXPECT_EQ(row.slot(1), (Floats{25, 9}));
}

TEST(Lamb, CorrectsMomenta) {
  TestedRow row(lamb(0.5, 5, 0), {6, 8});
  EXPECT_EQ(row.step(0.25f, {3, 5}), (Floats{4.5f, 6}));
  EXPECT_EQ(row.slot(0), (Floats{1.5f, 2.5f}));
}

TEST(Lamb, DecayIsPartOfTheDirection) {
  TestedRow row(lamb(0, 5, 0.5), {3, 4});
  EXPECT_EQ(row.step(0.25f, {0, 0}), (Floats{2.25f, 3}));  // x = half the row: 0.25 * 2 * x
}

TEST(Lamb, ARowOfZerosDoesNotMove) {
  TestedRow row(lamb(0, 5, 0.5), {0, 0});
  EXPECT_EQ(row.step(1, {3, 5}), (Floats{0, 0}));
  EXPECT_EQ(row.slot(0), (Floats{3, 5}));
}

TEST(Lamb, ADirectionOfZerosIsNoStep) {
  TestedRow row(lamb(0, 5, 0), {3, -0.0f});
  const Floats after = row.step(1, {0, -0.0f});
  EXPECT_EQ(after, (Floats{3, 0}));
  EXPECT_TRUE(std::signbit(after[1]));
}

TEST(Lamb, MomentaAndVelocitiesStartAtZero) {
  TestedRows rows(Optimizer("lamb", 0.1), 1, 2);
  EXPECT_EQ(rows.num_slots(), 2);
  EXPECT_EQ(rows.slot_name(0), "momenta");
  EXPECT_EQ(rows.slot_name(1), "velocities");
  EXPECT_EQ(rows.slot_values(0, 0), (Floats{0, 0}));
  EXPECT_EQ(rows.slot_values(1, 0), (Floats{0, 0}));
}

TEST(Lamb, SaysWhatItRefuses) {
  EXPECT_EQ(refusal("lamb", {{"beta1", 1}}), "lamb: beta1 must be in [0, 1), got 1");
  EXPECT_EQ(refusal("lamb", {{"beta2", 1}}), "lamb: beta2 must be in [0, 1), got 1");
  EXPECT_EQ(refusal("lamb", {{"epsilon", 0}}), "lamb: epsilon must be > 0, got 0");
  EXPECT_EQ(refusal("lamb", {{"weight_decay", -1}}), "lamb: weight_decay must be >= 0, got -1");
  EXPECT_EQ(refusal("lamb", {}, {.weight_decay_factor = 0.5}),
            "lamb: weight_decay_factor must be 0, since weight_decay is the rule's own decay, got "
            "0.5");
}

}  // namespace
}  // namespace embertable
