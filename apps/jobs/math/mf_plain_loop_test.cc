#include "apps/jobs/math/mf_plain_loop.h"

#include <gtest/gtest.h>

namespace embertable::jobs {
namespace {

TEST(PlainMf, MovesRowsAndBiasesByTheirGradients) {
  PlainMf model = make_plain_mf(1, 2, 2, 1, 0, 1);
  model.user = {1, 2};
  model.item = {3, 4, 5, 6};
  model.item_bias = {0, 0.5f};
  const std::vector<Rating> ratings = {{0, 1, 16.5f}};
  // Prediction 1 + 0 + 0.5 + 5 + 12 = 18.5, error 2; rate 0.5, regularization 0.25.
  EXPECT_EQ(plain_mf_predict(model, 0, 1), 18.5f);
  EXPECT_EQ(plain_mf_epoch(model, ratings, 0.5f, 0.25f), 4);
  EXPECT_EQ(model.user, (std::vector<float>{1 - 0.5f * (10 + 0.25f), 2 - 0.5f * (12 + 0.5f)}));
  EXPECT_EQ(model.item, (std::vector<float>{3, 4, 5 - 0.5f * (2 + 1.25f), 6 - 0.5f * (4 + 1.5f)}));
  EXPECT_EQ(model.user_bias, std::vector<float>{-1});
  EXPECT_EQ(model.item_bias, (std::vector<float>{0, 0.5f - 0.5f * (2 + 0.125f)}));
}

TEST(PlainMf, LearnsWhatItSees) {
  for (const std::int64_t dim : {8, 20}) {
    PlainMf model = make_plain_mf(4, 4, dim, 3, 0.1f, 7);
    std::vector<Rating> ratings;
    for (std::int32_t u = 0; u < 4; ++u) {
      for (std::int32_t i = 0; i < 4; ++i)
        ratings.push_back({u, i, static_cast<float>(1 + (u * i) % 5)});
    }
    const double first = plain_mf_epoch(model, ratings, 0.05f, 0.001f);
    double last = first;
    for (int epoch = 0; epoch < 300; ++epoch) last = plain_mf_epoch(model, ratings, 0.05f, 0.001f);
    EXPECT_LT(last, first / 100);
    EXPECT_NEAR(plain_mf_predict(model, 2, 2), 5, 0.3);
  }
}

}  // namespace
}  // namespace embertable::jobs
