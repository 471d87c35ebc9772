#include "apps/jobs/data/ranking.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "testing/executor.h"

namespace embertable::jobs {
namespace {

using Items = std::vector<std::int32_t>;

/// Vectors of small whole numbers, whose products are exact and often equal.
std::vector<float> small_numbers(std::int64_t count, std::uint32_t seed) {
  std::mt19937 random(test_seed(seed));
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>(static_cast<int>(random() % 5) - 2));
  return values;
}

/// Everything that a ranking borrows.
struct Case {
  Case(std::int64_t num_queries, std::int64_t num_items, std::int64_t dim, std::int64_t most,
       bool excludes = true)
      : queries(small_numbers(num_queries * dim, 1)), items(small_numbers(num_items * dim, 2)) {
    std::mt19937 random(test_seed(3));
    for (std::int64_t q = 0; q < num_queries; ++q) {
      for (std::int32_t i = 0; excludes && i < num_items; ++i) {
        if (random() % 4 == 0) excluded.push_back(i);
      }
      splits.push_back(std::ssize(excluded));
    }
    ranking = {.queries = queries.data(),
               .num_queries = num_queries,
               .items = items.data(),
               .num_items = num_items,
               .dim = dim,
               .excluded = {splits, excluded},
               .most = most};
  }
  Case(const Case&) = delete;

  std::vector<float> queries, items;
  std::vector<std::int64_t> splits = {0};
  Items excluded;
  Ranking ranking;
};

/// Sorts all that is left.
Items slow(const Ranking& r) {
  Items all;
  for (std::int64_t q = 0; q < r.num_queries; ++q) {
    std::vector<std::pair<double, std::int32_t>> scores;
    const auto excluded = r.excluded[q];
    for (std::int32_t i = 0; i < r.num_items; ++i) {
      if (std::find(excluded.begin(), excluded.end(), i) != excluded.end()) continue;
      double sum = 0;
      for (std::int64_t k = 0; k < r.dim; ++k)
        sum += r.queries[q * r.dim + k] * r.items[i * r.dim + k];
      scores.emplace_back(-sum, i);
    }
    std::sort(scores.begin(), scores.end());
    for (std::int64_t place = 0; place < r.most; ++place) {
      all.push_back(place < std::ssize(scores) ? scores[place].second : -1);
    }
  }
  return all;
}

TEST(RankItems, FindsTheBestAsSortingDoes) {
  const auto executor = make_inline_executor();
  const std::int64_t shapes[][4] = {{1, 1, 1, 1},    {3, 15, 2, 4},    {5, 16, 3, 20},
                                    {65, 17, 16, 5}, {130, 600, 5, 7}, {66, 1100, 17, 20}};
  for (const auto& [queries, items, dim, most] : shapes) {
    const Case c(queries, items, dim, most);
    const Items wanted = slow(c.ranking);
    for (const SimdLevel level : usable_levels())
      EXPECT_EQ(rank_items(c.ranking, *executor, level), wanted) << items << to_string(level);
  }
}

TEST(RankItems, HasNoDifferenceBetweenExecutors) {
  const Case c(300, 700, 9, 10);
  const Items wanted = rank_items(c.ranking, *make_inline_executor(), simd_level());
  for (const std::int32_t threads : {2, 3, 7})
    EXPECT_EQ(rank_items(c.ranking, *make_thread_pool(threads), simd_level()), wanted);
}

TEST(RankItems, EveryLevelRanksTheSameWhereSumsAreRounded) {
  Case c(70, 530, 33, 12, false);
  std::mt19937 random(test_seed(5));
  std::normal_distribution<float> normal;
  for (float& x : c.queries) x = normal(random);
  for (float& x : c.items) x = normal(random) * 1e-3f;
  // Twins, whose scores are equal to the last bit: the lower number is first.
  std::copy_n(c.items.begin(), 33 * 100, c.items.begin() + 33 * 400);
  const auto executor = make_inline_executor();
  const Items scalar = rank_items(c.ranking, *executor, SimdLevel::kScalar);
  for (const SimdLevel level : usable_levels())
    EXPECT_EQ(rank_items(c.ranking, *executor, level), scalar);
  for (std::size_t i = 0; i < scalar.size(); ++i) {
    if (scalar[i] < 400 || scalar[i] >= 500) continue;
    ASSERT_NE(i % 12, 0u);
    EXPECT_EQ(scalar[i - 1], scalar[i] - 400);
  }
}

TEST(RankItems, LeavesOutWhatHasNoScore) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> queries = {1}, items = {nan, 2, -infinity, infinity, nan};
  const Ranking ranking{.queries = queries.data(),
                        .num_queries = 1,
                        .items = items.data(),
                        .num_items = 5,
                        .dim = 1,
                        .most = 4};
  EXPECT_EQ(rank_items(ranking, *make_inline_executor(), SimdLevel::kScalar),
            (Items{3, 1, -1, -1}));
}

TEST(RankItems, NobodyAndNothingMayBeRanked) {
  const Case nobody(0, 4, 2, 3), nothing(2, 0, 2, 3, false);
  EXPECT_EQ(rank_items(nobody.ranking, *make_inline_executor(), simd_level()), Items{});
  EXPECT_EQ(rank_items(nothing.ranking, *make_inline_executor(), simd_level()),
            (Items{-1, -1, -1, -1, -1, -1}));
}

/// The metric over two queries that want items and one that does not.
double value(const std::string& name, const Items& ranked, std::int64_t most) {
  const std::vector<std::int64_t> splits = {0, 3, 3, 4};
  const Items wanted = {2, 5, 9, /**/ 7};
  return mean_quality(*ranking_metric(name), ranked, most, {splits, wanted});
}

TEST(MeanQuality, IsAsItsFormulaSays) {
  const Items ranked = {4, 5, 2, 1, /**/ 2, 5, 9, 7, /**/ 7, 1, -1, -1};
  EXPECT_DOUBLE_EQ(value("recall@1", ranked, 4), 0.5);
  EXPECT_DOUBLE_EQ(value("recall@3", ranked, 4), (2.0 / 3 + 1) / 2);
  EXPECT_DOUBLE_EQ(value("hr@1", ranked, 4), 0.5);
  EXPECT_DOUBLE_EQ(value("hr@2", ranked, 4), 1);
  const double third = 1 / std::log2(3.0);
  EXPECT_NEAR(value("ndcg@3", ranked, 4), ((third + 0.5) / (1 + third + 0.5) + 1) / 2, 1e-15);
  EXPECT_NEAR(value("ndcg@2", ranked, 4), (third / (1 + third) + 1) / 2, 1e-15);
}

TEST(MeanQuality, IsNoneIfNobodyWantsAnything) {
  const std::vector<std::int64_t> splits = {0, 0};
  EXPECT_TRUE(std::isnan(mean_quality(*ranking_metric("recall@2"), Items{1, 2}, 2, {splits, {}})));
  EXPECT_TRUE(std::isnan(mean_quality(*ranking_metric("recall@2"), Items{1, 2}, 2, {})));
}

TEST(RankingMetric, KnowsItsNames) {
  EXPECT_EQ(ranking_metric("recall@20")->cutoff, 20);
  EXPECT_EQ(ranking_metric("ndcg@10000")->kind, RankingMetric::Kind::kNdcg);
  EXPECT_EQ(ranking_metric("hr@10")->kind, RankingMetric::Kind::kHitRate);
  for (const char* name : {"recall", "recall@", "recall@0", "recall@-1", "hr@1x", "hr@010",
                           "ndcg@10001", "precision@5", "rmse"})
    EXPECT_FALSE(ranking_metric(name)) << name;
}

}  // namespace
}  // namespace embertable::jobs
