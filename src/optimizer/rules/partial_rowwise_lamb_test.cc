#include <gtest/gtest.h>

#include <cmath>

#include "testing/rule_rows.h"

namespace embertable {
namespace {

using Floats = std::vector<float>;

const AddReference partial_rowwise_lamb_reference(
    "partial_rowwise_lamb",
    [](const Optimizer& optimizer, double rate, std::int64_t t, std::vector<double>& w,
       std::vector<std::vector<double>>& slots, const std::vector<double>& g) {
      const double beta1 = binary32(optimizer, "beta1"), beta2 = binary32(optimizer, "beta2");
      double gradient_squares = 0;
      for (const double x : g) gradient_squares += x * x;
      double& v = slots[1][0];
      v = beta2 * v + (1 - beta2) * gradient_squares / static_cast<double>(g.size());
      const double square = v / (1 - std::pow(beta2, static_cast<double>(t)));
      std::vector<double> x(w.size());
      double row_squares = 0, squares = 0;
      for (std::size_t i = 0; i < w.size(); ++i) {
        double& m = slots[0][i];
        m = beta1 * m + (1 - beta1) * g[i];
        const double mean = m / (1 - std::pow(beta1, static_cast<double>(t)));
        x[i] = mean / (std::sqrt(square) + binary32(optimizer, "epsilon")) +
               binary32(optimizer, "weight_decay") * w[i];
        row_squares += w[i] * w[i];
        squares += x[i] * x[i];
      }
      for (std::size_t i = 0; i < w.size() && squares != 0; ++i)
        w[i] -= rate * std::sqrt(row_squares / squares) * x[i];
    },
    {{{"weight_decay", 0.125}}});

Optimizer partial_rowwise_lamb(double beta1, double decay) {
  return Optimizer("partial_rowwise_lamb", 0.1,
                   {{"beta1", beta1}, {"beta2", 0}, {"epsilon", 1}, {"weight_decay", decay}});
}

TEST(PartialRowwiseLamb, TwoStepsByHand) {
  TestedRow row(partial_rowwise_lamb(0, 0), {0.5f, 0.5f, 2.5f, 1.5f});
  // v = 36 / 4: x = g / (3 + 1), its norm 1.5, the row's 3: the row less 0.25 * 2 * x.
  EXPECT_EQ(row.step(0.25f, {1, 1, 5, 3}), (Floats{0.375f, 0.375f, 1.875f, 1.125f}));
  EXPECT_EQ(row.slot(0), (Floats{1, 1, 5, 3}));
  EXPECT_EQ(row.slot(1), Floats{9});
  // The row's norm 2.25: the row less 1.5 * x.
  EXPECT_EQ(row.step(1, {3, 5, 1, 1}), (Floats{-0.75f, -1.5f, 1.5f, 0.75f}));
  EXPECT_EQ(row.slot(0), (Floats{3, 5, 1, 1}));
  EXPECT_EQ(row.slot(1), Floats{9});
}

TEST(PartialRowwiseLamb, CorrectsMomenta) {
  TestedRow row(partial_rowwise_lamb(0.5, 0), {0.5f, 0.5f, 2.5f, 1.5f});
  EXPECT_EQ(row.step(0.25f, {1, 1, 5, 3}), (Floats{0.375f, 0.375f, 1.875f, 1.125f}));
  EXPECT_EQ(row.slot(0), (Floats{0.5f, 0.5f, 2.5f, 1.5f}));
}

TEST(PartialRowwiseLamb, DecayIsPartOfTheDirection) {
  TestedRow row(partial_rowwise_lamb(0, 0.5), {3, 4});
  EXPECT_EQ(row.step(0.25f, {0, 0}), (Floats{2.25f, 3}));  // x = half the row: 0.25 * 2 * x
}

TEST(PartialRowwiseLamb, ARowOfZerosDoesNotMove) {
  TestedRow row(partial_rowwise_lamb(0, 0.5), {0, 0});
  EXPECT_EQ(row.step(1, {1, 7}), (Floats{0, 0}));
  EXPECT_EQ(row.slot(0), (Floats{1, 7}));
  EXPECT_EQ(row.slot(1), Floats{25});
}

TEST(PartialRowwiseLamb, ADirectionOfZerosIsNoStep) {
  TestedRow row(partial_rowwise_lamb(0, 0), {3, -0.0f});
  const Floats after = row.step(1, {0, -0.0f});
  EXPECT_EQ(after, (Floats{3, 0}));
  EXPECT_TRUE(std::signbit(after[1]));
}

TEST(PartialRowwiseLamb, VelocityIsOneNumberThatStartsAtZero) {
  TestedRows rows(Optimizer("partial_rowwise_lamb", 0.1), 1, 2);
  EXPECT_EQ(rows.num_slots(), 2);
  EXPECT_EQ(rows.slot_name(0), "momenta");
  EXPECT_EQ(rows.slot_name(1), "velocities");
  EXPECT_EQ(rows.slot_values(0, 0), (Floats{0, 0}));
  EXPECT_EQ(rows.slot_values(1, 0), Floats{0});
}

TEST(PartialRowwiseLamb, SaysWhatItRefuses) {
  const std::string rule = "partial_rowwise_lamb";
  EXPECT_EQ(refusal(rule, {{"beta1", 1}}), rule + ": beta1 must be in [0, 1), got 1");
  EXPECT_EQ(refusal(rule, {{"beta2", 1}}), rule + ": beta2 must be in [0, 1), got 1");
  EXPECT_EQ(refusal(rule, {{"epsilon", 0}}), rule + ": epsilon must be > 0, got 0");
  EXPECT_EQ(refusal(rule, {{"weight_decay", -1}}), rule + ": weight_decay must be >= 0, got -1");
  EXPECT_EQ(refusal(rule, {}, {.weight_decay_factor = 0.5}),
            rule +
                ": weight_decay_factor must be 0, since weight_decay is the rule's own decay, "
                "got 0.5");
}

}  // namespace
}  // namespace embertable
