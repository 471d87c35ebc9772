#include "apps/jobs/models/skipgram_run.h"

#include <gtest/gtest.h>

#include <cmath>
#include <tuple>
#include <vector>

namespace embertable::jobs {
namespace {

using Floats = std::vector<float>;

/// A run of words with small numbers that depend on their place, and reaches of every kind.
struct Words {
  Words(std::int64_t num_centres, std::int64_t most, std::int64_t num_negatives,
        std::int64_t columns)
      : centres(num_centres), window(most), negatives(num_negatives), dim(columns) {
    const auto fill = [this](std::int64_t rows) {
      Floats values;
      for (std::int64_t i = 0; i < rows * dim; ++i)
        values.push_back(static_cast<float>((next_++ * 37 % 101) - 50) / 64);
      return values;
    };
    centre = fill(centres);
    context = fill(centres + 2 * window);
    negative = fill(negatives);
    for (std::int64_t i = 0; i < centres; ++i) {
      before.push_back(static_cast<std::uint8_t>((i + 1) % (window + 1)));
      after.push_back(static_cast<std::uint8_t>(i * 2 % (window + 1)));
    }
  }

  SkipgramRun run() {
    return {.dim = dim,
            .centres = centres,
            .window = window,
            .negatives = negatives,
            .centre = centre.data(),
            .context = context.data(),
            .negative = negative.data(),
            .before = before.data(),
            .after = after.data(),
            .negative_weight = 0.625f};
  }

  std::vector<float*> values() {
    std::vector<float*> all;
    for (Floats* rows : {&centre, &context, &negative}) {
      for (float& value : *rows) all.push_back(&value);
    }
    return all;
  }

  std::int64_t centres, window, negatives, dim;
  Floats centre, context, negative;
  std::vector<std::uint8_t> before, after;

 private:
  int next_ = 1;
};

double product(const Floats& a, std::int64_t i, const Floats& b, std::int64_t j, std::int64_t dim) {
  double sum = 0;
  for (std::int64_t k = 0; k < dim; ++k)
    sum += static_cast<double>(a[i * dim + k]) * static_cast<double>(b[j * dim + k]);
  return sum;
}

double softplus(double x) { return std::log1p(std::exp(x)); }

/// The loss in double, as the header says it.
double loss(const Words& w) {
  double sum = 0;
  for (std::int64_t i = 0; i < w.centres; ++i) {
    const std::int64_t before = w.before[i];
    const std::int64_t after = w.after[i];
    for (std::int64_t j = i + w.window - before; j <= i + w.window + after; ++j)
      if (j != i + w.window) sum += softplus(-product(w.centre, i, w.context, j, w.dim));
    for (std::int64_t n = 0; n < w.negatives; ++n)
      sum += static_cast<double>(before + after) * 0.625 *
             softplus(product(w.centre, i, w.negative, n, w.dim));
  }
  return sum;
}

class SkipgramRuns : public testing::TestWithParam<std::tuple<int, int, int, int>> {
 protected:
  Words words() const { return std::make_from_tuple<Words>(GetParam()); }
};

TEST_P(SkipgramRuns, LossIsThatOfTheFormula) {
  Words w = words();
  const double expected = loss(w);
  EXPECT_NEAR(skipgram_loss(w.run(), SimdLevel::kScalar), expected, 2e-6 * expected);
}

TEST_P(SkipgramRuns, GradientsAreTheSlopesOfTheLoss) {
  Words w = words(), gradients = words();
  const double expected = loss(w);
  EXPECT_NEAR(skipgram_gradients(gradients.run(), SimdLevel::kScalar), expected, 2e-6 * expected);
  const std::vector<float*> values = w.values(), slopes = gradients.values();
  constexpr float kStep = 1.0f / 1024;
  for (std::size_t i = 0; i < values.size(); i += 5) {
    const float value = *values[i];
    *values[i] = value + kStep;
    const double above = loss(w);
    *values[i] = value - kStep;
    const double below = loss(w);
    *values[i] = value;
    EXPECT_NEAR(*slopes[i], (above - below) / (2 * kStep), 2e-5) << i;
  }
}

TEST_P(SkipgramRuns, EveryLevelGivesTheSameBits) {
  Words scalar = words();
  const double first = skipgram_loss(scalar.run(), SimdLevel::kScalar);
  EXPECT_EQ(skipgram_gradients(scalar.run(), SimdLevel::kScalar), first);
  for (const SimdLevel level : usable_levels()) {
    Words w = words();
    EXPECT_EQ(skipgram_loss(w.run(), level), first);
    EXPECT_EQ(skipgram_gradients(w.run(), level), first);
    EXPECT_EQ(w.centre, scalar.centre);
    EXPECT_EQ(w.context, scalar.context);
    EXPECT_EQ(w.negative, scalar.negative);
  }
}

// Centres, window, negatives, dim.
INSTANTIATE_TEST_SUITE_P(Shapes, SkipgramRuns,
                         testing::Values(std::tuple(1, 1, 1, 1), std::tuple(3, 2, 5, 15),
                                         std::tuple(4, 5, 8, 16), std::tuple(16, 5, 8, 100),
                                         std::tuple(5, 3, 17, 17), std::tuple(2, 1, 3, 300)));

TEST(SkipgramRun, UntrainedPairsCostSixTimesTheLogarithmOfTwo) {
  Words w(4, 2, 5, 8);
  w.context.assign(w.context.size(), 0);
  w.negative.assign(w.negative.size(), 0);
  SkipgramRun run = w.run();
  run.negative_weight = 1;
  std::int64_t pairs = 0;
  for (std::size_t i = 0; i < 4; ++i) pairs += w.before[i] + w.after[i];
  EXPECT_NEAR(skipgram_loss(run, simd_level()) / static_cast<double>(pairs), 6 * std::log(2.0),
              1e-5);
}

TEST(SkipgramRun, CentresWithoutPairsMoveNothing) {
  Words w(3, 2, 4, 20);
  w.before.assign(3, 0);
  w.after.assign(3, 0);
  EXPECT_EQ(skipgram_gradients(w.run(), simd_level()), 0);
  for (const float* value : w.values()) EXPECT_EQ(*value, 0);
}

// Beyond 16 the exponential stays where it is: nothing overflows, no gradient is lost.
TEST(SkipgramRun, GreatProductsCostWhatTheyAre) {
  Floats centre = {30, 0}, context = {0, 0, 0, 0, -2, 0}, negative = {3, 0};
  const std::uint8_t before = 0, after = 1;
  const SkipgramRun run = {.dim = 2,
                           .centres = 1,
                           .window = 1,
                           .negatives = 1,
                           .centre = centre.data(),
                           .context = context.data(),
                           .negative = negative.data(),
                           .before = &before,
                           .after = &after};
  EXPECT_NEAR(skipgram_gradients(run, simd_level()), 60 + 90, 1e-4);
  EXPECT_NEAR(centre[0], 2 + 3, 1e-5);
  EXPECT_NEAR(context[4], -30, 1e-4);
  EXPECT_NEAR(negative[0], 30, 1e-4);
}

}  // namespace
}  // namespace embertable::jobs
