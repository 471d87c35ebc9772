#include <gtest/gtest.h>

#include <cmath>

#include "testing/rule_rows.h"

namespace embertable {
namespace {

using Floats = std::vector<float>;

const AddReference partial_rowwise_adam_reference(
    "partial_rowwise_adam",
    [](const Optimizer& optimizer, double rate, std::int64_t t, std::vector<double>& w,
       std::vector<std::vector<double>>& slots, const std::vector<double>& g) {
      const double beta1 = binary32(optimizer, "beta1"), beta2 = binary32(optimizer, "beta2");
      double squares = 0;
      for (const double x : g) squares += x * x;
      double& v = slots[1][0];
      v = beta2 * v + (1 - beta2) * squares / static_cast<double>(g.size());
      const double square = v / (1 - std::pow(beta2, static_cast<double>(t)));
      const double divisor = std::sqrt(square) + binary32(optimizer, "epsilon");
      for (std::size_t i = 0; i < w.size(); ++i) {
        double& m = slots[0][i];
        m = beta1 * m + (1 - beta1) * g[i];
        const double mean = m / (1 - std::pow(beta1, static_cast<double>(t)));
        w[i] -= rate * (mean / divisor + binary32(optimizer, "weight_decay") * w[i]);
      }
    },
    {{{"weight_decay", 0.125}}});

Optimizer partial_rowwise_adam(double beta2, double decay) {
  return Optimizer("partial_rowwise_adam", 0.1,
                   {{"beta1", 0.5}, {"beta2", beta2}, {"epsilon", 1}, {"weight_decay", decay}});
}

TEST(PartialRowwiseAdam, TwoStepsByHand) {
  TestedRow row(partial_rowwise_adam(0, 0.25), {8, 16});
  // m = 0.5, 3.5, corrected 1, 7; v = (1 + 49) / 2: 3 * m / (5 + 1), and 1 - 3 * 0.25 of the row.
  EXPECT_EQ(row.step(3, {1, 7}), (Floats{1.5f, 0.5f}));
  EXPECT_EQ(row.slot(0), (Floats{0.5f, 3.5f}));
  EXPECT_EQ(row.slot(1), Floats{25});
  // m = 0.25 + 3.5, 1.75 + 0.5, corrected 5, 3; v = 25.
  EXPECT_EQ(row.step(3, {7, 1}), (Floats{0.375f - 2.5f, 0.125f - 1.5f}));
  EXPECT_EQ(row.slot(0), (Floats{3.75f, 2.25f}));
  EXPECT_EQ(row.slot(1), Floats{25});
}

TEST(PartialRowwiseAdam, CorrectsVelocitiesUnderTheRoot) {
  TestedRow row(partial_rowwise_adam(0.75, 0), {8, 16});
  EXPECT_EQ(row.step(6, {1, 7}), (Floats{7, 9}));  // corrected 1, 7 and 25: 6 * m / (5 + 1)
  EXPECT_EQ(row.slot(1), Floats{6.25f});
}

TEST(PartialRowwiseAdam, VelocityIsOneNumberThatStartsAtZero) {
  TestedRows rows(Optimizer("partial_rowwise_adam", 0.1), 1, 2);
  EXPECT_EQ(rows.num_slots(), 2);
  EXPECT_EQ(rows.slot_name(0), "momenta");
  EXPECT_EQ(rows.slot_name(1), "velocities");
  EXPECT_EQ(rows.slot_values(0, 0), (Floats{0, 0}));
  EXPECT_EQ(rows.slot_values(1, 0), Floats{0});
}

TEST(PartialRowwiseAdam, SaysWhatItRefuses) {
  const std::string rule = "partial_rowwise_adam";
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
