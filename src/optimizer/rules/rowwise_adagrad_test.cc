#include <gtest/gtest.h>

#include <cmath>

#include "testing/rule_rows.h"

namespace embertable {
namespace {

using Floats = std::vector<float>;

const AddReference rowwise_adagrad_reference(
    "rowwise_adagrad",
    [](const Optimizer& optimizer, double rate, std::int64_t, std::vector<double>& w,
       std::vector<std::vector<double>>& slots, const std::vector<double>& g) {
      const double mode = optimizer.parameter("weight_decay_mode");
      const double l2 = mode == 1 ? binary32(optimizer, "weight_decay") : 0;
      const double decoupled = mode == 2 ? binary32(optimizer, "weight_decay") : 0;
      double squares = 0;
      for (std::size_t i = 0; i < w.size(); ++i) squares += std::pow(g[i] + l2 * w[i], 2);
      double& a = slots[0][0];
      a += squares / static_cast<double>(g.size());
      const double k = rate / (std::sqrt(a) + binary32(optimizer, "epsilon"));
      for (std::size_t i = 0; i < w.size(); ++i)
        w[i] -= k * (g[i] + l2 * w[i]) + rate * decoupled * w[i];
    },
    {{{"weight_decay", 0.125}, {"weight_decay_mode", "l2"}},
     {{"weight_decay", 0.125}, {"weight_decay_mode", "decoupled"}}});

TEST(RowwiseAdagrad, TwoStepsByHand) {
  TestedRow row(Optimizer("rowwise_adagrad", 12, {{"epsilon", 1}}), {0, 20});
  EXPECT_EQ(row.step(12, {1, 7}), (Floats{-2, 6}));  // a = (1 + 49) / 2, k = 12 / (5 + 1)
  EXPECT_EQ(row.slot(0), Floats{25});
  EXPECT_EQ(row.step(7, {12, 12}), (Floats{-8, 0}));  // a = 25 + 144, k = 7 / (13 + 1)
  EXPECT_EQ(row.slot(0), Floats{169});
}

TEST(RowwiseAdagrad, AccumulatorIsOneNumberThatStartsAtItsParameter) {
  TestedRows rows(Optimizer("rowwise_adagrad", 0.1, {{"initial_accumulator_value", 0.25}}), 1, 8);
  EXPECT_EQ(rows.slot_name(0), "accumulators");
  EXPECT_EQ(rows.slot_values(0, 0), Floats{0.25f});
}

TEST(RowwiseAdagrad, DecayOfL2IsPartOfTheGradient) {
  TestedRow row(Optimizer("rowwise_adagrad", 0.1,
                          {{"epsilon", 1}, {"weight_decay", 1}, {"weight_decay_mode", "l2"}}),
                {1, 2});
  // a = (1 + 49) / 2, k = 3 / (5 + 1): half of the row less half of the gradient.
  EXPECT_EQ(row.step(3, {0, 5}), (Floats{0.5f, -1.5f}));
  EXPECT_EQ(row.slot(0), Floats{25});
}

TEST(RowwiseAdagrad, DecoupledDecayIsNot) {
  const Optimizer optimizer(
      "rowwise_adagrad", 0.1,
      {{"epsilon", 3}, {"weight_decay", 0.25}, {"weight_decay_mode", "decoupled"}});
  TestedRow row(optimizer, {4, 8});
  // a = (1 + 49) / 2, k = 2 / (5 + 3): 1 - 2 * 0.25 of the row less a quarter of the gradient.
  EXPECT_EQ(row.step(2, {1, 7}), (Floats{1.75f, 2.25f}));
  EXPECT_EQ(row.slot(0), Floats{25});
}

TEST(RowwiseAdagrad, SaysWhatItRefuses) {
  EXPECT_EQ(refusal("rowwise_adagrad", {{"weight_decay_mode", "l1"}}),
            "rowwise_adagrad: weight_decay_mode must be none or l2 or decoupled, got 'l1'");
  EXPECT_EQ(refusal("rowwise_adagrad", {{"weight_decay", 0.5}}),
            "rowwise_adagrad: weight_decay must be 0 where weight_decay_mode is none, got 0.5");
  EXPECT_EQ(refusal("rowwise_adagrad", {}, {.weight_decay_factor = 0.5}),
            "rowwise_adagrad: weight_decay_factor must be 0, since weight_decay is the rule's own "
            "decay, got 0.5");
}

/// Sum of squares in 16 lanes, folded by halves.
float lane_sum(const Floats& g) {
  float lane[16] = {};
  for (std::size_t i = 0; i < g.size(); ++i) {
    const float square = g[i] * g[i];
    lane[i % 16] += square;
  }
  for (const int half : {8, 4, 2, 1}) {
    for (int i = 0; i < half; ++i) lane[i] += lane[i + half];
  }
  return lane[0];
}

TEST(RowwiseAdagrad, SumsInSixteenLanesFoldedByHalves) {
  for (const std::size_t dim : {1, 15, 16, 17, 33, 64, 100, 1000, 4096}) {
    Floats g(dim);
    for (std::size_t i = 0; i < dim; ++i) g[i] = 0.1f + 0.37f * static_cast<float>(i * i % 101);
    TestedRow row(Optimizer("rowwise_adagrad", 1), Floats(dim, 0));
    row.step(1, g);
    EXPECT_EQ(row.slot(0), Floats{lane_sum(g) / static_cast<float>(dim)}) << dim;
  }
}

}  // namespace
}  // namespace embertable
