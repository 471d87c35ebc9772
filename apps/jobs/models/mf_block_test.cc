#include "apps/jobs/models/mf_block.h"

#include <gtest/gtest.h>

#include <vector>

namespace embertable::jobs {
namespace {

using Floats = std::vector<float>;

/// Samples with all parts, small numbers that depend on their place.
struct Samples {
  Samples(std::int64_t num_samples, std::int64_t num_columns, int num_sides)
      : samples(num_samples), dim(num_columns) {
    const auto fill = [this](std::int64_t size) {
      Floats values;
      for (std::int64_t i = 0; i < size; ++i)
        values.push_back(static_cast<float>((next_++ * 37 % 101) - 50) / 64);
      return values;
    };
    user = fill(samples * dim);
    item = fill(samples * dim);
    for (int k = 0; k < num_sides; ++k) sides.push_back(fill(samples * dim));
    user_bias = fill(samples);
    item_bias = fill(samples);
    label = fill(samples);
  }

  MfBlock block() {
    side_rows.clear();
    for (Floats& side : sides) side_rows.push_back(side.data());
    return {.samples = samples,
            .dim = dim,
            .user = user.data(),
            .item = item.data(),
            .sides = side_rows.data(),
            .num_sides = static_cast<std::int64_t>(sides.size()),
            .user_bias = user_bias.data(),
            .item_bias = item_bias.data(),
            .label = label.data(),
            .mean = 0.5f,
            .regularization = 0.125f};
  }

  /// Everything that is looked up, in one list of addresses.
  std::vector<float*> values() {
    std::vector<float*> all;
    const auto add = [&](Floats& values) {
      for (float& value : values) all.push_back(&value);
    };
    add(user);
    add(item);
    for (Floats& side : sides) add(side);
    add(user_bias);
    add(item_bias);
    return all;
  }

  std::int64_t samples, dim;
  Floats user, item, user_bias, item_bias, label;
  std::vector<Floats> sides;
  std::vector<float*> side_rows;

 private:
  int next_ = 1;
};

double prediction(const Samples& s, std::int64_t sample) {
  double sum = 0.5 + s.user_bias[sample] + s.item_bias[sample];
  for (std::int64_t k = 0; k < s.dim; ++k) {
    const auto at = static_cast<std::size_t>(sample * s.dim + k);
    double q = s.item[at];
    for (const Floats& side : s.sides) q += side[at];
    sum += s.user[at] * q;
  }
  return sum;
}

/// The loss in double: half the squares of the errors, and an eighth of half the squares of all
/// rows.
double loss(Samples& s) {
  double sum = 0;
  for (std::int64_t i = 0; i < s.samples; ++i) {
    const double error = prediction(s, i) - s.label[i];
    sum += error * error / 2;
  }
  for (const float* value : s.values()) sum += 0.125 * *value * *value / 2;
  return sum;
}

class Mf : public testing::TestWithParam<std::tuple<int, int, int>> {
 protected:
  Samples samples() const {
    return {std::get<0>(GetParam()), std::get<1>(GetParam()), std::get<2>(GetParam())};
  }
};

TEST_P(Mf, PredictsAsTheFormulaSays) {
  Samples s = samples();
  Floats out(s.samples);
  mf_predict(s.block(), out.data(), SimdLevel::kScalar);
  for (std::int64_t i = 0; i < s.samples; ++i) EXPECT_NEAR(out[i], prediction(s, i), 1e-5);
}

TEST_P(Mf, GradientsAreTheSlopesOfTheLoss) {
  Samples s = samples();
  Samples gradients = samples();
  double squares = 0;
  for (std::int64_t i = 0; i < s.samples; ++i) {
    const double error = prediction(s, i) - s.label[i];
    squares += error * error;
  }
  EXPECT_NEAR(mf_gradients(gradients.block(), SimdLevel::kScalar), squares, 1e-4 * (1 + squares));
  const std::vector<float*> values = s.values();
  const std::vector<float*> slopes = gradients.values();
  constexpr float kStep = 1.0f / 1024;
  for (std::size_t i = 0; i < values.size(); i += 7) {
    const float value = *values[i];
    *values[i] = value + kStep;
    const double above = loss(s);
    *values[i] = value - kStep;
    const double below = loss(s);
    *values[i] = value;
    EXPECT_NEAR(*slopes[i], (above - below) / (2 * kStep), 1e-4) << i;
  }
}

TEST_P(Mf, EveryLevelGivesTheSameBits) {
  Samples scalar = samples();
  Floats scalar_out(scalar.samples);
  mf_predict(scalar.block(), scalar_out.data(), SimdLevel::kScalar);
  const double scalar_squares = mf_gradients(scalar.block(), SimdLevel::kScalar);
  for (const SimdLevel level : usable_levels()) {
    Samples s = samples();
    Floats out(scalar_out.size());
    mf_predict(s.block(), out.data(), level);
    EXPECT_EQ(out, scalar_out);
    EXPECT_EQ(mf_gradients(s.block(), level), scalar_squares);
    EXPECT_EQ(s.user, scalar.user);
    EXPECT_EQ(s.item, scalar.item);
    EXPECT_EQ(s.sides, scalar.sides);
    EXPECT_EQ(s.user_bias, scalar.user_bias);
    EXPECT_EQ(s.item_bias, scalar.item_bias);
  }
}

// Samples, dim, sides.
INSTANTIATE_TEST_SUITE_P(Shapes, Mf,
                         testing::Values(std::tuple(3, 1, 0), std::tuple(2, 15, 1),
                                         std::tuple(2, 16, 0), std::tuple(2, 17, 2),
                                         std::tuple(5, 32, 1), std::tuple(1, 50, 0)));

TEST(MfBlock, MayLackBiases) {
  Floats user = {2}, item = {3}, label = {10}, out(1);
  MfBlock block{.samples = 1,
                .dim = 1,
                .user = user.data(),
                .item = item.data(),
                .label = label.data(),
                .mean = 1};
  mf_predict(block, out.data(), SimdLevel::kScalar);
  EXPECT_EQ(out, Floats{7});
  EXPECT_EQ(mf_gradients(block, SimdLevel::kScalar), 9);  // error -3
  EXPECT_EQ(user, Floats{-9});
  EXPECT_EQ(item, Floats{-6});
}

}  // namespace
}  // namespace embertable::jobs
