// Batches in which few ids have most entries, and those in which most ids come once: the same bits
// for any number of workers and hosts.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "embertable/embertable.h"
#include "engine/engine.h"
#include "testing/executor.h"
#include "testing/sanitized.h"

namespace embertable {
namespace {

constexpr std::int64_t kRows = 3000;

/// One feature of one replica in one batch.
struct HotIds {
  std::vector<std::int64_t> ids, splits = {0};
  std::vector<float> weights;

  /// `hot` in 100 ids are one of `rows`.
  HotIds(std::uint64_t seed, std::int64_t samples, std::int64_t most, std::uint64_t hot,
         const std::vector<std::int64_t>& rows, std::int64_t table_rows) {
    std::uint64_t draw = 0;
    const auto below = [&](std::uint64_t n) { return random_bits(seed, 1, 2, draw++) % n; };
    for (std::int64_t sample = 0; sample < samples; ++sample) {
      for (auto n = static_cast<std::int64_t>(below(static_cast<std::uint64_t>(most + 1))); n > 0;
           --n) {
        const bool is_hot = below(100) < hot;
        ids.push_back(
            is_hot ? rows[below(rows.size())]
                   : static_cast<std::int64_t>(below(static_cast<std::uint64_t>(table_rows))));
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
  Optimizer rule = Optimizer("rowwise_adagrad", 0.1);
  std::int32_t dim = 20;
  std::int64_t table_rows = kRows;
  RowType row_type = RowType::kFloat32;
  bool once = false;  ///< rows named once must be set apart
};

/// What three steps read. It is drawn once for all runs of a scenario.
struct Inputs {
  explicit Inputs(const Scenario& of) {
    for (std::uint64_t step = 0; step < 3; ++step)
      for (std::uint64_t k = 0; k < 2 * static_cast<std::uint64_t>(of.replicas); ++k)
        drawn[step].emplace_back(step * 100 + k, of.samples, 4, of.hot, of.rows, of.table_rows);
    for (std::int64_t i = 0; i < of.samples * of.dim; ++i)
      gradient.push_back(
          static_cast<float>(random_bits(test_seed(9), 8, 7, static_cast<std::uint64_t>(i)) %
                             2001) /
              977.0f -
          1);
  }

  std::array<std::vector<HotIds>, 3> drawn;  // by step: two features of each replica
  std::vector<float> gradient;               // one feature's of one replica, the same in every step
};

/// Rows and activations after three steps. The replicas are shared out among the hosts.
std::vector<float> train(const Scenario& of, const Inputs& inputs,
                         std::shared_ptr<Executor> executor, std::int32_t hosts = 1) {
  StrategyOptions strategy;
  strategy.hosts = hosts;
  strategy.replicas_per_host = of.replicas / hosts;
  strategy.executor = std::move(executor);
  const Combiner combiner = of.weighted ? Combiner::kMean : Combiner::kSum;
  const TablePtr table = make_table({.vocabulary_size = of.table_rows,
                                     .dim = of.dim,
                                     .combiner = combiner,
                                     .name = "t",
                                     .row_type = of.row_type});
  const FeatureConfig feature{.table = table};
  Embedding engine(Nested<FeatureConfig>::list({feature, feature}), of.rule,
                   make_strategy(strategy));
  std::vector<float> seen;
  const std::vector<float>& gradient = inputs.gradient;
  for (const std::vector<HotIds>& drawn : inputs.drawn) {
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
    for (std::int32_t r = 0; r < of.replicas; ++r) {
      const std::span<const float> values = activations(1, r).values;
      seen.insert(seen.end(), values.begin(), values.end());
    }
    engine.apply_gradients(gradients);
  }
  EXPECT_EQ(engine::engine_of(engine).runner.entries_set_apart(0) > 0, of.once) << of.name;
  std::vector<std::int64_t> all(of.table_rows);
  for (std::int64_t r = 0; r < of.table_rows; ++r) all[r] = r;
  std::vector<float> rows(of.table_rows * of.dim);
  engine.read_rows("t", all, rows);
  seen.insert(seen.end(), rows.begin(), rows.end());
  return seen;
}

/// Trains in other ways, each beside one worker on one host.
class Bits {
 public:
  explicit Bits(const Scenario& of)
      : of_(of), inputs_(of), want_(train(of_, inputs_, make_inline_executor())) {}

  void expect_same(std::shared_ptr<Executor> executor, const std::string& name,
                   std::int32_t hosts = 1) const {
    const std::vector<float> got = train(of_, inputs_, std::move(executor), hosts);
    ASSERT_EQ(got.size(), want_.size());
    EXPECT_EQ(std::memcmp(got.data(), want_.data(), want_.size() * sizeof(float)), 0)
        << of_.name << ": " << name << ", " << hosts << " hosts";
  }

  void expect_same_shuffled(std::uint64_t seed, std::int32_t workers,
                            std::int32_t hosts = 1) const {
    const auto shuffled = std::make_shared<TestExecutor>(seed, workers);
    expect_same(shuffled, shuffled->to_string(), hosts);
  }

 private:
  Scenario of_;
  Inputs inputs_;
  std::vector<float> want_;
};

void same_bits(const Scenario& of) {
  const Bits bits(of);
  for (std::int32_t workers = 1; workers <= 8; workers += kSanitized ? 3 : 1)
    bits.expect_same(make_thread_pool(workers), std::to_string(workers) + " threads");
  for (const std::int32_t workers : {2, 64})
    bits.expect_same_shuffled(static_cast<std::uint64_t>(workers) + 5, workers);
}

/// A host has the gradients of its own replicas one by one; there must be thousands of a hot row.
void same_bits_on_hosts(const Scenario& of) {
  const Bits bits(of);
  const std::vector<std::int32_t> threads =
      kSanitized ? std::vector<std::int32_t>{5} : std::vector<std::int32_t>{1, 2, 5};
  for (const std::int32_t hosts : {1, 2, 4}) {
    for (const std::int32_t workers : threads)
      bits.expect_same(make_thread_pool(workers), std::to_string(workers) + " threads", hosts);
    bits.expect_same_shuffled(static_cast<std::uint64_t>(hosts) + 11, 64, hosts);
  }
}

TEST(HotIds, GiveTheSameBitsWhereOneIdHasAThirdOfAllEntries) {
  same_bits({.name = "one feature's pieces", .hot = 30});
  same_bits({.name = "replicas", .hot = 30, .samples = 2500, .replicas = 3});
  same_bits({.name = "weighted mean", .hot = 40, .weighted = true});
}

// From the second step on, rows named once are set apart from buckets.
TEST(RowsNamedOnce, GiveTheSameBits) {
  same_bits({.name = "once", .hot = 5, .dim = 16, .table_rows = 60'000, .once = true});
  same_bits_on_hosts({.name = "once and replicas",
                      .hot = 10,
                      .samples = 1500,
                      .replicas = 4,
                      .weighted = true,
                      .rule = Optimizer("adagrad", 0.1),
                      .dim = 32,
                      .table_rows = 120'000,
                      .once = true});
}

TEST(RowsOfBfloat16, GiveTheSameBits) {
  same_bits({.name = "hot", .hot = 40, .samples = 3000, .dim = 16, .row_type = RowType::kBfloat16});
  same_bits({.name = "once",
             .hot = 5,
             .samples = 4000,
             .dim = 32,
             .table_rows = 60'000,
             .row_type = RowType::kBfloat16,
             .once = true});
  same_bits_on_hosts({.name = "once and replicas",
                      .hot = 10,
                      .samples = 1200,
                      .replicas = 4,
                      .rule = Optimizer("adagrad", 0.1),
                      .dim = 16,
                      .table_rows = 100'000,
                      .row_type = RowType::kBfloat16,
                      .once = true});
}

/// Digest after a step in which NaNs of both signs reach one row that has half of all entries.
std::string digest_with_nans(std::int32_t workers, std::int32_t hosts) {
  constexpr std::int64_t kSamples = 20000;
  constexpr std::int32_t kDim = 64;
  StrategyOptions strategy;
  strategy.hosts = hosts;
  strategy.replicas_per_host = 2 / hosts;
  strategy.executor = std::make_shared<TestExecutor>(3, workers);
  const TablePtr table = make_table({.vocabulary_size = kRows, .dim = kDim, .name = "t"});
  Embedding engine(Nested<FeatureConfig>(FeatureConfig{.table = table}), Optimizer("sgd", 0.1),
                   make_strategy(strategy));
  engine.build(Nested<Shape>(Shape{kSamples}));
  std::vector<std::int64_t> ids(kSamples);
  for (std::int64_t i = 0; i < kSamples; ++i) ids[i] = i % 2 == 0 ? 7 : i % kRows;
  const std::vector<Batch> batches(2, Batch{Nested<FeatureIds>(DenseIds{ids, {}}), {}});
  engine.enqueue(batches);
  engine.dequeue();
  std::vector<float> gradient(kSamples * kDim, 1);
  std::fill_n(gradient.begin(), kDim, std::bit_cast<float>(0x7fc00000u));
  std::fill_n(gradient.begin() + 9000 * kDim, kDim, std::bit_cast<float>(0xffc00000u));
  engine.apply_gradients(std::vector<Nested<Gradient>>(2, Nested<Gradient>({gradient, {}})));
  return engine.digest();
}

TEST(HotIds, TheDigestTakesEveryNaNForTheSame) {
  const std::string expected = digest_with_nans(1, 1);
  for (const std::int32_t workers : {2, 4, 16})
    for (const std::int32_t hosts : {1, 2})
      EXPECT_EQ(digest_with_nans(workers, hosts), expected) << workers << " workers";
}

/// Scratch of an engine after a step of 2^18 ids, two thirds of which are one id.
std::int64_t scratch_with(std::int32_t workers) {
  constexpr std::int64_t kIds = 1 << 18;
  StrategyOptions strategy;
  strategy.executor = std::make_shared<TestExecutor>(3, workers);
  const TablePtr table = make_table({.vocabulary_size = kRows, .dim = 8, .name = "t"});
  Embedding engine(Nested<FeatureConfig>(FeatureConfig{.table = table}), Optimizer("sgd", 0.1),
                   make_strategy(strategy));
  std::vector<std::int64_t> ids(kIds);
  for (std::int64_t i = 0; i < kIds; ++i) ids[i] = i % 3 == 0 ? i % kRows : 7;
  const std::vector<std::int64_t> splits = {0, kIds / 2, kIds};
  engine.enqueue(Batch{Nested<FeatureIds>(RaggedIds{splits, ids}), {}});
  engine.dequeue();
  engine.apply_gradients(Nested<Gradient>(Gradient::none()));
  return engine.memory().entries.back().bytes;
}

TEST(HotIds, ScratchIsBoundedByTheBatchWhateverTheWorkers) {
  constexpr std::int64_t kMiB = 1 << 20;
  const std::int64_t one = scratch_with(1);
  for (const std::int32_t workers : {2, 64})
    EXPECT_LE(scratch_with(workers), one + 200 * (1 << 18) + workers * (2 * kMiB + 65536))
        << workers << " workers, one has " << one;
}

TEST(HotIds, GiveTheSameBitsWhereThereIsOneIdAlone) {
  same_bits({.name = "one id", .hot = 100});
  same_bits({.name = "the last row", .hot = 100, .rows = {kRows - 1}, .replicas = 2});
}

TEST(HotIds, GiveTheSameBitsWhereAFewIdsHaveMostEntries) {
  same_bits({.name = "neighbours", .hot = 90, .rows = {32, 33, 34, 35}});
  same_bits({.name = "a rule with slots of every column",
             .hot = 60,
             .rows = {5, 2000},
             .rule = Optimizer("adam", 0.1)});
}

TEST(HotIds, GiveTheSameBitsOnSeveralHosts) {
  same_bits_on_hosts({.name = "a third", .hot = 30, .samples = 4500, .replicas = 4});
  same_bits_on_hosts({.name = "one id", .hot = 100, .samples = 1500, .replicas = 4});
  same_bits_on_hosts({.name = "the first and the last host's",
                      .hot = 90,
                      .rows = {3, 2999},
                      .samples = 3000,
                      .replicas = 4,
                      .weighted = true,
                      .rule = Optimizer("adam", 0.1)});
  same_bits_on_hosts({.name = "several pieces", .hot = 50, .samples = 4500, .replicas = 4});
}

TEST(HotIds, GiveTheSameBitsWhereRowsAreWide) {
  same_bits({.name = "many columns", .hot = 60, .samples = 3500, .dim = 512});
  same_bits({.name = "no multiple of a vector", .hot = 60, .samples = 3500, .dim = 509});
  same_bits({.name = "a last column alone", .hot = 100, .samples = 1200, .dim = 257});
  same_bits_on_hosts({.name = "on hosts",
                      .hot = 90,
                      .rows = {7, 2222},
                      .samples = 3000,
                      .replicas = 4,
                      .dim = 500});
}

TEST(HotIds, GiveTheSameBitsWhereEveryRowSteps) {
  const Optimizer adam("adam", 0.1, {{"lazy_adam", false}});
  same_bits({.name = "adam", .hot = 30, .rule = adam});
  same_bits({.name = "lion, one id",
             .hot = 100,
             .rule = Optimizer("lion", 0.1, {{"use_non_lazy_lion", true}})});
  same_bits({.name = "wide", .hot = 60, .samples = 3500, .rule = adam, .dim = 510});
  same_bits_on_hosts({.name = "on hosts",
                      .hot = 90,
                      .rows = {4, 2900},
                      .samples = 3000,
                      .replicas = 4,
                      .rule = adam});
}

}  // namespace
}  // namespace embertable
