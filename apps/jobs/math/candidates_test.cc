#include "apps/jobs/math/candidates.h"

#include <gtest/gtest.h>

#include <cmath>
#include <tuple>
#include <vector>

namespace embertable::jobs {
namespace {

using Floats = std::vector<float>;

/// ItemRows of small numbers that depend on their place.
struct ItemRows {
  ItemRows(std::int64_t samples, std::int64_t dim, std::int64_t width, bool pairs, bool sides) {
    query = fill(samples * dim);
    items = fill(samples * width * dim);
    block = {.samples = samples,
             .dim = dim,
             .width = width,
             .query = query.data(),
             .items = items.data(),
             .pairs = pairs,
             .regularization = 0.125f};
    if (!sides) return;
    query_side = fill(samples * dim);
    item_side = fill(samples * width * dim);
    for (std::int64_t s = 0; s < samples; ++s) share.push_back(s % 2 == 0 ? 1.0f : 0.75f);
    block.query_side = query_side.data();
    block.item_side = item_side.data();
    block.side_share = share.data();
  }
  ItemRows(const ItemRows&) = delete;

  Floats fill(std::int64_t size) {
    Floats values;
    for (std::int64_t i = 0; i < size; ++i)
      values.push_back(static_cast<float>((next_++ * 37 % 101) - 50) / 64);
    return values;
  }

  std::vector<float*> values() {
    std::vector<float*> all;
    for (Floats* rows : {&query, &query_side, &items, &item_side}) {
      for (float& value : *rows) all.push_back(&value);
    }
    return all;
  }

  Candidates block;
  Floats query, items, query_side, item_side, share;

 private:
  int next_ = 1;
};

double score(const ItemRows& r, std::int64_t sample, std::int64_t k) {
  double sum = 0;
  for (std::int64_t c = 0; c < r.block.dim; ++c) {
    const auto q = static_cast<std::size_t>(sample * r.block.dim + c);
    const auto i = static_cast<std::size_t>((sample * r.block.width + k) * r.block.dim + c);
    double query = r.query[q], item = r.items[i];
    if (!r.query_side.empty()) {
      query += static_cast<double>(r.share[sample]) * r.query_side[q];
      item += r.item_side[i];
    }
    sum += query * item;
  }
  return sum;
}

/// The losses in double without regularization.
double losses(const ItemRows& r) {
  double sum = 0;
  for (std::int64_t s = 0; s < r.block.samples; ++s) {
    const double chosen = score(r, s, 0);
    if (!r.block.pairs) sum += std::log1p(std::exp(-chosen));
    for (std::int64_t k = 1; k < r.block.width; ++k)
      sum += std::log1p(std::exp(score(r, s, k) - (r.block.pairs ? chosen : 0)));
  }
  return sum;
}

double whole_loss(ItemRows& r) {
  double sum = losses(r);
  for (const float* value : r.values()) sum += 0.125 * *value * *value / 2;
  return sum;
}

class CandidateGradients
    : public testing::TestWithParam<std::tuple<std::tuple<int, int, int>, bool, bool>> {
 protected:
  static std::tuple<int, int, int, bool, bool> shape() {
    const auto& [sizes, pairs, sides] = GetParam();
    return std::tuple_cat(sizes, std::tuple(pairs, sides));
  }
};

TEST_P(CandidateGradients, AreTheSlopesOfTheLoss) {
  const auto [samples, dim, width, pairs, sides] = shape();
  ItemRows r(samples, dim, width, pairs, sides), gradients(samples, dim, width, pairs, sides);
  const double sum = losses(r);
  EXPECT_NEAR(candidate_gradients(gradients.block, SimdLevel::kScalar), sum, 1e-5 * (1 + sum));
  const std::vector<float*> values = r.values(), slopes = gradients.values();
  constexpr float kStep = 1.0f / 1024;
  for (std::size_t i = 0; i < values.size(); i += values.size() / 32 + 1) {
    const float value = *values[i];
    *values[i] = value + kStep;
    const double above = whole_loss(r);
    *values[i] = value - kStep;
    const double below = whole_loss(r);
    *values[i] = value;
    const double slope = (above - below) / (2 * kStep);
    EXPECT_NEAR(*slopes[i], slope, 2e-4 + 1e-5 * std::fabs(slope)) << i;
  }
}

TEST_P(CandidateGradients, HaveTheSameBitsAtEveryLevel) {
  const auto [samples, dim, width, pairs, sides] = shape();
  ItemRows scalar(samples, dim, width, pairs, sides);
  const double sum = candidate_gradients(scalar.block, SimdLevel::kScalar);
  for (const SimdLevel level : usable_levels()) {
    ItemRows r(samples, dim, width, pairs, sides);
    EXPECT_EQ(candidate_gradients(r.block, level), sum);
    EXPECT_EQ(r.query, scalar.query);
    EXPECT_EQ(r.items, scalar.items);
    EXPECT_EQ(r.query_side, scalar.query_side);
    EXPECT_EQ(r.item_side, scalar.item_side);
  }
}

// Samples, dim, width.
INSTANTIATE_TEST_SUITE_P(
    Shapes, CandidateGradients,
    testing::Combine(testing::Values(std::tuple(1, 1, 2), std::tuple(3, 15, 3),
                                     std::tuple(9, 16, 2), std::tuple(2, 17, 17),
                                     std::tuple(21, 64, 51), std::tuple(1, 5, 1024)),
                     testing::Bool(), testing::Bool()));

TEST(CandidateGradients, OfOnePairAreAsOnPaper) {
  // Scores 1 * 2 and 1 * 2: the slope of log(1 + e^0) is 1/2.
  Floats query = {1}, items = {2, 2};
  const Candidates block{.samples = 1,
                         .dim = 1,
                         .width = 2,
                         .query = query.data(),
                         .items = items.data(),
                         .pairs = true,
                         .regularization = 0.25f};
  EXPECT_EQ(candidate_gradients(block, SimdLevel::kScalar), std::log(2.0f));
  EXPECT_EQ(query, Floats{0.25f});
  EXPECT_EQ(items, (Floats{-0.5f + 0.5f, 0.5f + 0.5f}));
}

}  // namespace
}  // namespace embertable::jobs
