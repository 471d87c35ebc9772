#include "apps/jobs/math/rating_baselines.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

namespace embertable::jobs {
namespace {

/// [user, item, label]
Samples samples_of(const std::vector<std::array<int, 3>>& rows) {
  Samples samples{.stride = 3};
  for (const auto& [user, item, label] : rows) {
    samples.cells.insert(samples.cells.end(),
                         {user, item, std::bit_cast<std::int32_t>(static_cast<float>(label))});
  }
  return samples;
}

TEST(Baselines, AreMeansOfWhatWasSeen) {
  // User 0 gave 1 and 3, user 1 gave 5; item 0 got 1 and 5, item 1 got 3. The mean is 3. User 2 is
  // new.
  const Samples training = samples_of({{0, 0, 1}, {0, 1, 3}, {1, 0, 5}});
  const std::vector<Baseline> found =
      rating_baselines(training, samples_of({{1, 1, 4}, {2, 0, 1}}), 0, 1, 1, 5);
  ASSERT_EQ(found.size(), 4u);
  EXPECT_DOUBLE_EQ(value_of(found[0].measures, "rmse"), std::sqrt((1 + 4) / 2.0));  // 3, 3
  EXPECT_DOUBLE_EQ(value_of(found[0].measures, "mae"), 1.5);
  EXPECT_DOUBLE_EQ(value_of(found[1].measures, "mae"), 1.5);                        // 3, 3
  EXPECT_DOUBLE_EQ(value_of(found[2].measures, "rmse"), std::sqrt((1 + 4) / 2.0));  // 5, 3
}

TEST(Baselines, BiasesAreShrunkByTwo) {
  // One user and one item, mean 4; biases (label - mean - other) / (1 + 2) = 0.
  const Samples test = samples_of({{0, 0, 5}});
  EXPECT_DOUBLE_EQ(
      value_of(rating_baselines(samples_of({{0, 0, 4}}), test, 0, 1, 1, 5)[3].measures, "mae"), 1);
  // Users 0 and 1 gave 5 and 1 to one item: mean 3, item bias 0 after users' +-2/3 are taken off.
  const Samples two = samples_of({{0, 0, 5}, {1, 0, 1}});
  EXPECT_NEAR(value_of(rating_baselines(two, test, 0, 1, 1, 5)[3].measures, "mae"),
              5 - (3 + 2.0 / 3), 1e-6);
}

}  // namespace
}  // namespace embertable::jobs
