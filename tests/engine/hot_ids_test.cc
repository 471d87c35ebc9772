// Batches in which few ids have most entries: the same bits for any number of workers.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/test_executor.h"
#include "embertable/embertable.h"

namespace embertable {
namespace {

constexpr std::int64_t kRows = 3000;

/// One feature of one replica in one batch.
struct HotIds {
  std::vector<std::int64_t> ids, splits = {0};
  std::vector<float> weights;

  /// `hot` in 100 ids are one of `rows`.
  HotIds(std::uint64_t seed, std::int64_t samples, std::int64_t most, std::uint64_t hot,
         const std::vector<std::int64_t>& rows) {
    std::uint64_t draw = 0;
    const auto below = [&](std::uint64_t n) { return random_bits(seed, 1, 2, draw++) % n; };
    for (std::int64_t sample = 0; sample < samples; ++sample) {
      for (auto n = static_cast<std::int64_t>(below(static_cast<std::uint64_t>(most + 1))); n > 0;
           --n) {
        const bool is_hot = below(100) < hot;
        ids.push_back(is_hot ? rows[below(rows.size())] : static_cast<std::int64_t>(below(kRows)));
        weights.push_back(0.25f + static_cast<float>(below(8)));
      }
      splits.push_back(static_cast<std::int64_t>(ids.size()));
    }
  }
};

struct Scenario {
  std::string name;
  std::uint64_t hot = 30;
  std::vector<std::int64_t> rows = {17};
  std::int64_t samples = 5000;
  std::int32_t replicas = 1;
  bool weighted = false;
  std::string rule = "rowwise_adagrad";
};

/// Rows and activations after three steps.
std::vector<float> train(const Scenario& of, std::shared_ptr<Executor> executor) {
  constexpr std::int32_t kDim = 20;
  StrategyOptions strategy;
  strategy.replicas_per_host = of.replicas;
  strategy.executor = std::move(executor);
  const Combiner combiner = of.weighted ? Combiner::kMean : Combiner::kSum;
  const TablePtr table =
      make_table({.vocabulary_size = kRows, .dim = kDim, .combiner = combiner, .name = "t"});
  const FeatureConfig feature{.table = table};
  Embedding engine(Nested<FeatureConfig>::list({feature, feature}), Optimizer(of.rule, 0.1),
                   make_strategy(strategy));
  std::vector<float> seen, gradient;
  for (std::int64_t i = 0; i < of.samples * kDim; ++i)
    gradient.push_back(
        static_cast<float>(random_bits(9, 8, 7, static_cast<std::uint64_t>(i)) % 2001) / 977.0f -
        1);
  for (std::uint64_t step = 0; step < 3; ++step) {
    std::vector<HotIds> drawn;
    for (std::uint64_t k = 0; k < 2 * static_cast<std::uint64_t>(of.replicas); ++k)
      drawn.emplace_back(step * 100 + k, of.samples, 4, of.hot, of.rows);
    std::vector<Batch> batches;
    std::vector<Nested<Gradient>> gradients;
    for (std::size_t r = 0; r < drawn.size(); r += 2) {
      std::vector<FeatureIds> ids;
      std::vector<FeatureWeights> weights;
      for (std::size_t f = r; f < r + 2; ++f) {
        ids.emplace_back(RaggedIds{drawn[f].splits, drawn[f].ids});
        weights.emplace_back(of.weighted ? FeatureWeights(RaggedWeights{drawn[f].weights})
                                         : FeatureWeights());
      }
      const Structure two = Structure::list({Structure(), Structure()});
      batches.push_back({Nested<FeatureIds>(two, ids), Nested<FeatureWeights>(two, weights)});
      gradients.push_back(Nested<Gradient>::list({Gradient{gradient, {}}, Gradient{gradient, {}}}));
    }
    engine.enqueue(batches);
    const Activations activations = engine.dequeue();
    const std::span<const float> values = activations(1).values;
    seen.insert(seen.end(), values.begin(), values.end());
    engine.apply_gradients(gradients);
  }
  std::vector<std::int64_t> all(kRows);
  for (std::int64_t r = 0; r < kRows; ++r) all[static_cast<std::size_t>(r)] = r;
  std::vector<float> rows(static_cast<std::size_t>(kRows * kDim));
  engine.read_rows("t", all, rows);
  seen.insert(seen.end(), rows.begin(), rows.end());
  return seen;
}

void same_bits(const Scenario& of) {
  SCOPED_TRACE(of.name);
  const std::vector<float> want = train(of, make_inline_executor());
  const auto expect_same = [&](std::shared_ptr<Executor> executor, const std::string& name) {
    const std::vector<float> got = train(of, std::move(executor));
    ASSERT_EQ(got.size(), want.size());
    EXPECT_EQ(std::memcmp(got.data(), want.data(), want.size() * sizeof(float)), 0) << name;
  };
  for (std::int32_t workers = 1; workers <= 8; ++workers)
    expect_same(make_thread_pool(workers), std::to_string(workers) + " threads");
  for (const std::int32_t workers : {2, 64}) {
    const auto shuffled =
        std::make_shared<TestExecutor>(static_cast<std::uint64_t>(workers) + 5, workers);
    expect_same(shuffled, shuffled->to_string());
  }
}

TEST(HotIds, GiveTheSameBitsWhereOneIdHasAThirdOfAllEntries) {
  same_bits({.name = "one feature's pieces", .hot = 30});
  same_bits({.name = "replicas", .hot = 30, .samples = 2500, .replicas = 3});
  same_bits({.name = "weighted mean", .hot = 40, .weighted = true});
}

TEST(HotIds, GiveTheSameBitsWhereThereIsOneIdAlone) {
  same_bits({.name = "one id", .hot = 100});
  same_bits({.name = "the last row", .hot = 100, .rows = {kRows - 1}, .replicas = 2});
}

TEST(HotIds, GiveTheSameBitsWhereAFewIdsHaveMostEntries) {
  same_bits({.name = "neighbours", .hot = 90, .rows = {32, 33, 34, 35}});
  same_bits(
      {.name = "a rule with slots of every column", .hot = 60, .rows = {5, 2000}, .rule = "adam"});
}

}  // namespace
}  // namespace embertable
