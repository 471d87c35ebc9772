// Tables whose lookups are quantized: trained, served, and kept in checkpoints.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "testing/engine/fixture.h"
#include "testing/executor.h"
#include "testing/temporary_directory.h"

namespace embertable {
namespace {

using namespace engine_fixture;
using F = std::vector<float>;
using Ids = std::vector<std::int64_t>;

constexpr QuantizationConfig kFive = {.num_buckets = 5, .lower = -1, .upper = 1};
constexpr QuantizationConfig kEleven = {.num_buckets = 11, .lower = 0, .upper = 10};

TablePtr table_of(const F& values, std::int32_t dim, std::optional<QuantizationConfig> quantization,
                  Combiner combiner = Combiner::kSum) {
  TableConfig table;
  table.vocabulary_size = static_cast<std::int64_t>(values.size()) / dim;
  table.dim = dim;
  table.initializer = Initializer::values(values);
  table.combiner = combiner;
  table.name = "numbers";
  table.quantization_config = quantization;
  return make_table(std::move(table));
}

/// What one dense id of every row of a column of numbers looks up.
F looked_up(const F& values, const QuantizationConfig& quantization) {
  Embedding engine =
      engine_with(accelerator(), Nested<FeatureConfig>(feature(table_of(values, 1, quantization))));
  Ids ids;
  for (std::size_t i = 0; i < values.size(); ++i) ids.push_back(static_cast<std::int64_t>(i));
  engine.enqueue(Batch{Nested<FeatureIds>(DenseIds{ids})}, {.training = false});
  return engine_fixture::values(engine.dequeue(), 0);
}

TEST(EngineCases, Case139_NumbersCountAsTheNearestOfElevenBeforeTheyAreAdded) {
  EXPECT_EQ(looked_up({3.4f, 3.5f, 12, -1}, kEleven), (F{3, 4, 10, 0}));
  Embedding engine =
      engine_with(accelerator(), Nested<FeatureConfig>(feature(table_of({3.4f}, 1, kEleven))));
  const Rows rows({{0, 0}});
  engine.enqueue(Batch{Nested<FeatureIds>(rows.ragged())});
  EXPECT_EQ(engine_fixture::values(engine.dequeue(), 0), (F{6}));
}

TEST(ConfigCases, Case16_TiesGoUp) {
  EXPECT_EQ(looked_up({-2, -0.75f, 0.2f, 0.25f, 0.9f, 5}, kFive), (F{-1, -0.5f, 0, 0.5f, 1, 1}));
  EXPECT_EQ(looked_up({-0.01f, 0}, {.num_buckets = 2, .lower = -1, .upper = 1}), (F{-1, 1}));
}

TEST(ConfigCases, Case17_QuantizesBeforeTheSum) {
  Embedding engine =
      engine_with(accelerator(), Nested<FeatureConfig>(feature(table_of({0.2f, 0.2f}, 1, kFive))));
  const Rows rows({{0, 1}});
  engine.enqueue(Batch{Nested<FeatureIds>(rows.sparse())});
  EXPECT_EQ(engine_fixture::values(engine.dequeue(), 0), (F{0}));
}

TEST(ConfigCases, Case88_RowsAndGradientsAreAsWithout) {
  const F start = {0.2f, -0.3f, 0.7f, 2.0f};
  const Rows rows({{0, 1}, {1}});
  std::vector<F> tables;
  for (const auto& quantization : {std::optional(kFive), std::optional<QuantizationConfig>()}) {
    Embedding engine =
        engine_with(accelerator(), Nested<FeatureConfig>(feature(table_of(start, 2, quantization))),
                    Optimizer("adagrad", 0.1));
    for (int step = 0; step < 3; ++step) {
      engine.enqueue(Batch{Nested<FeatureIds>(rows.ragged())});
      const Activations activations = engine.dequeue();
      std::vector<F> storage;
      engine.apply_gradients(all(activations, storage, 0.25f));
    }
    F now = row(engine, "numbers", 0, 2);
    for (const std::int64_t id : {0, 1}) {
      for (const float x : row(engine, "numbers", id, 2)) now.push_back(x);
      for (const float x : row(engine, "numbers/accumulators", id, 2)) now.push_back(x);
    }
    tables.push_back(now);
  }
  EXPECT_EQ(tables[0], tables[1]);
}

/// The number that x counts as, in double.
double quantized(double x, const QuantizationConfig& q) {
  const double step = (double{q.upper} - q.lower) / (q.num_buckets - 1);
  const double inside = std::min<double>(std::max<double>(x, q.lower), q.upper);
  return std::floor((inside - q.lower) / step + 0.5) * step + q.lower;
}

/// 40 rows whose numbers stand off the ties by a third of a step.
F numbers_off_ties(std::int32_t dim, const QuantizationConfig& q, std::mt19937& random) {
  const double step = (double{q.upper} - q.lower) / (q.num_buckets - 1);
  F all;
  for (std::int32_t i = 0; i < 40 * dim; ++i) {
    const auto bucket =
        static_cast<double>(random() % static_cast<unsigned>(q.num_buckets + 4)) - 2;
    const double off = (static_cast<double>(random() % 1000) / 1000 - 0.5) * step * 0.66;
    all.push_back(static_cast<float>(q.lower + bucket * step + off));
  }
  return all;
}

/// Every kind of input on any number of hosts: what a table of the quantized numbers gives, and
/// what serving gives, to the bit.
TEST(Quantization, IsOfThePlaceWhereRowsAreRead) {
  std::mt19937 random(test_seed(3));
  for (int round = 0; round < 24; ++round) {
    const std::int32_t dim = 1 + static_cast<std::int32_t>(random() % 70);
    const QuantizationConfig q = {.num_buckets = 2 + static_cast<std::int32_t>(random() % 20),
                                  .lower = -1.5f,
                                  .upper = 0.75f};
    const auto combiner = static_cast<Combiner>(round % 3);
    const F numbers = numbers_off_ties(dim, q, random);
    std::vector<std::vector<std::int64_t>> samples(6);
    for (auto& sample : samples)
      for (unsigned n = random() % 4; n > 0; --n) sample.push_back(random() % 40);
    const Rows rows(samples);
    const Ids dense = {3, 39, 0, 3, 17, 20};
    const TablePtr table = table_of(numbers, dim, q, combiner);
    const auto features =
        Nested<FeatureConfig>::tuple({feature(table), feature(table, 2), feature(table)});
    const Batch batch{Nested<FeatureIds>::tuple(
        {FeatureIds(rows.ragged()), FeatureIds(rows.sparse()), FeatureIds(DenseIds{dense})})};
    std::vector<F> first;
    for (const std::int32_t hosts : {1, 2, 3}) {
      Embedding engine = engine_with(accelerator(hosts, hosts), features);
      engine.enqueue(batch, {.training = false});
      const Activations activations = engine.dequeue();
      std::vector<F> now;
      for (std::int64_t f = 0; f < 3; ++f)
        now.push_back(engine_fixture::values(activations, f, hosts - 1));
      if (first.empty()) first = now;
      EXPECT_EQ(now, first) << hosts << " hosts";
    }
    for (std::size_t i = 0; i < dense.size(); ++i)
      for (std::int32_t c = 0; c < dim; ++c)
        ASSERT_NEAR(first[2][i * dim + static_cast<std::size_t>(c)],
                    quantized(numbers[dense[i] * dim + c], q), 1e-6);
    Embedding plain(features, std::nullopt, nullptr);
    const LookupOutput served = serving_embedding_lookup(batch, plain.embedding_tables(), features);
    for (const std::int64_t f : {0, 2})
      EXPECT_EQ(F(served(f).values.begin(), served(f).values.end()), first[f]);
  }
}

TEST(Quantization, IsServedFromACheckpointWhichHoldsTheRowsAsTheyAre) {
  const TemporaryDirectory directory;
  const F numbers = {3.4f, 3.5f, 12, -1};
  Embedding engine = engine_with(
      accelerator(), Nested<FeatureConfig>::map({{"n", feature(table_of(numbers, 1, kEleven))}}));
  engine.build(4);
  engine.save(directory.path());
  ServingEmbedding served = ServingEmbedding::open(directory.path());
  const Ids ids = {0, 1, 2, 3};
  const LookupOutput output =
      served.embedding_lookup(Batch{Nested<FeatureIds>::map({{"n", FeatureIds(DenseIds{ids})}})});
  EXPECT_EQ(F(output(0).values.begin(), output(0).values.end()), (F{3, 4, 10, 0}));
  F rows(4);
  served.read_rows("numbers", ids, rows);
  EXPECT_EQ(rows, numbers);
}

TEST(Quantization, RefusesNumbersThatNoFloatTellsApart) {
  EXPECT_EQ(refusal<ValueError>([] {
              validate(QuantizationConfig{.num_buckets = 100, .lower = 0, .upper = 1e-44f});
            }).find("quantization_config: (upper - lower) / (num_buckets - 1) must be"),
            0u);
}

}  // namespace
}  // namespace embertable
