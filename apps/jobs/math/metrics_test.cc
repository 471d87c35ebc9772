#include "apps/jobs/math/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/random.h"
#include "testing/executor.h"

namespace embertable::jobs {
namespace {

TEST(RatingMetrics, AreRootOfMeanSquareAndMeanOfAbsolutes) {
  RatingMetrics metrics(1, 5);
  metrics.add(std::vector<float>{2, 3}, std::vector<float>{4, 3});  // errors -2, 0
  metrics.add(std::vector<float>{4.5f}, std::vector<float>{3});     // 1.5
  EXPECT_EQ(metrics.samples(), 3);
  EXPECT_DOUBLE_EQ(metrics.rmse(), std::sqrt((4 + 2.25) / 3));
  EXPECT_DOUBLE_EQ(metrics.mae(), 3.5 / 3);
}

TEST(RatingMetrics, ClipPredictionsToTheRange) {
  RatingMetrics metrics(1, 5);
  metrics.add(std::vector<float>{-7, 9}, std::vector<float>{1, 4});  // errors 0, 1
  EXPECT_DOUBLE_EQ(metrics.rmse(), std::sqrt(0.5));
  EXPECT_DOUBLE_EQ(metrics.mae(), 0.5);
}

TEST(RatingMetrics, OfNothingAreNone) {
  EXPECT_TRUE(std::isnan(RatingMetrics(0, 1).rmse()));
  EXPECT_TRUE(std::isnan(RatingMetrics(0, 1).mae()));
}

using Floats = std::vector<float>;

/// By looking at every pair.
double slow_area(const Floats& scores, const Floats& labels) {
  double wins = 0, pairs = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    for (std::size_t k = 0; k < scores.size(); ++k) {
      if (labels[i] != 1 || labels[k] != 0) continue;
      pairs += 1;
      wins += scores[i] > scores[k] ? 1 : scores[i] == scores[k] ? 0.5 : 0;
    }
  }
  return wins / pairs;
}

TEST(AreaUnderCurve, IsTheShareOfPairsInTheRightOrder) {
  EXPECT_EQ(area_under_curve(Floats{1, 2, 3, 4}, Floats{0, 0, 1, 1}), 1);
  EXPECT_EQ(area_under_curve(Floats{1, 2, 3, 4}, Floats{1, 1, 0, 0}), 0);
  EXPECT_EQ(area_under_curve(Floats{-3, 2, -1, 4}, Floats{0, 0, 1, 1}), 0.75);
}

TEST(AreaUnderCurve, EqualScoresCountHalf) {
  EXPECT_EQ(area_under_curve(Floats{7, 7, 7}, Floats{0, 1, 1}), 0.5);
  EXPECT_EQ(area_under_curve(Floats{0.0f, -0.0f}, Floats{1, 0}), 0.5);
  EXPECT_EQ(area_under_curve(Floats{1, 2, 2, 3}, Floats{0, 0, 1, 1}), 0.875);
}

TEST(AreaUnderCurve, OfOneLabelAloneIsThatOfChance) {
  EXPECT_TRUE(std::isnan(area_under_curve(Floats{}, Floats{})));
  EXPECT_EQ(area_under_curve(Floats{1, 2}, Floats{1, 1}), 0.5);
  EXPECT_EQ(area_under_curve(Floats{1, 2}, Floats{0, 0}), 0.5);
}

TEST(AreaUnderCurve, OfWhatIsNoNumberIsNone) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(area_under_curve(Floats{1, nan}, Floats{0, 1})));
  const float infinite = std::numeric_limits<float>::infinity();
  EXPECT_EQ(area_under_curve(Floats{infinite, -infinite}, Floats{1, 0}), 1);
}

TEST(AreaUnderCurve, AgreesWithACountOfAllPairs) {
  Floats scores, labels;
  for (std::uint64_t i = 0; i < 500; ++i) {
    scores.push_back(static_cast<float>(random_bits(test_seed(1), i, 0) % 40) - 20);
    labels.push_back(static_cast<float>(random_bits(test_seed(1), i, 1) % 3 == 0));
  }
  EXPECT_DOUBLE_EQ(area_under_curve(scores, labels), slow_area(scores, labels));
}

TEST(LogLoss, IsTheMeanOfTheLogarithms) {
  EXPECT_DOUBLE_EQ(log_loss(Floats{0, 0}, Floats{0, 1}), std::log(2.0));
  const double p = 1 / (1 + std::exp(-1.5)), q = 1 / (1 + std::exp(0.25));
  EXPECT_NEAR(log_loss(Floats{1.5f, -0.25f}, Floats{1, 0}), -(std::log(p) + std::log(1 - q)) / 2,
              1e-15);
  EXPECT_TRUE(std::isnan(log_loss(Floats{}, Floats{})));
}

TEST(LogLoss, OfCertaintyIsFinite) {
  EXPECT_NEAR(log_loss(Floats{1e9f}, Floats{0}), -std::log(1e-15), 0.01);
  EXPECT_NEAR(log_loss(Floats{-1e9f}, Floats{1}), -std::log(1e-15), 0.01);
  EXPECT_NEAR(log_loss(Floats{1e9f}, Floats{1}), 1e-15, 1e-15);
}

}  // namespace
}  // namespace embertable::jobs
