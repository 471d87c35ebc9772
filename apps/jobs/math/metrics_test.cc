#include "apps/jobs/math/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

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

TEST(RatingMetrics, OfNothingAreZero) {
  EXPECT_EQ(RatingMetrics(0, 1).rmse(), 0);
  EXPECT_EQ(RatingMetrics(0, 1).mae(), 0);
}

}  // namespace
}  // namespace embertable::jobs
