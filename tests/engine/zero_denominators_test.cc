// Output rows whose denominator is zero: infinite and NaN gradients of them reach no row.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "testing/engine/reference_model.h"
#include "testing/executor.h"

namespace embertable {
namespace {

using namespace engine_fixture;  // NOLINT: the vocabulary of these tests

float no_number(std::size_t i) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  return std::array{kInfinity, std::nanf(""), -kInfinity}[i % 3];
}

/// The divisor of a sample, as the specification has it.
float divisor(Combiner combiner, const std::vector<Entry>& entries) {
  if (combiner == Combiner::kSum || entries.empty()) return 1;
  float sum = 0;
  for (const Entry& entry : entries) {
    const auto w = static_cast<float>(entry.weight);
    sum += combiner == Combiner::kMean ? w : w * w;
  }
  return combiner == Combiner::kMean ? sum : std::sqrt(sum);
}

/// Replaces the gradients of samples with a zero divisor. Returns the number of such samples.
std::int64_t spoil(F& gradient, Combiner combiner, const Input& input) {
  std::int64_t spoilt = 0;
  const std::size_t dim = input.entries.empty() ? 0 : gradient.size() / input.entries.size();
  for (std::size_t i = 0; i < input.entries.size(); ++i) {
    if (divisor(combiner, input.entries[i]) != 0) continue;
    for (std::size_t c = 0; c < dim; ++c) gradient[i * dim + c] = no_number(i + c);
    ++spoilt;
  }
  return spoilt;
}

TEST(ZeroDenominators, RandomEnginesAgreeWithTheModelToTheBit) {
  const std::uint64_t seed = test_seed();
  std::int64_t spoilt = 0;
  for (std::uint64_t i = 0; i < 400 && !testing::Test::HasFailure(); ++i) {
    Dice dice(mix_seeds(seed, i));
    const Scene scene(mix_seeds(seed, 77 + i), {.columns = 2, .any_rule = true});
    StrategyOptions strategy;
    strategy.hosts = scene.replicas == 1 ? 1 : dice.pick({1, 2});
    strategy.executor = std::make_shared<TestExecutor>(mix_seeds(seed, i), 3);
    EmbeddingOptions options;
    options.tuning = {.bucket_bytes = dice.pick({0, 1, 256}), .inline_floats = 0};
    options.pipeline_execution_with_tensor_core = dice.chance(30);
    SCOPED_TRACE("EMBERTABLE_TEST_SEED=" + std::to_string(seed) + ", engine " + std::to_string(i));
    Embedding engine = scene.engine(strategy, options);
    Model model(scene);
    for (int step = 0; step < Scene::kSteps; ++step) {
      Model::Inputs inputs;
      for (const std::vector<Input>& replica : scene.steps[step]) inputs.push_back(&replica);
      std::vector<F> gradients;
      train(engine, scene.batches[step], [&](const Activation& a, std::int64_t f, std::int32_t r) {
        F gradient = scene.gradient(step, r, f, a.values, 0);
        const std::size_t table = scene.features[f].table;
        spoilt += spoil(gradient, scene.tables[table].config->combiner, scene.steps[step][r][f]);
        return gradients.emplace_back(std::move(gradient));
      });
      model.update(inputs, gradients, 0.1f);
    }
    for (std::size_t t = 0; t < scene.tables.size(); ++t) {
      const TableConfig& table = *scene.tables[t].config;
      const F rows = variable(engine, *table.name, table.vocabulary_size, table.dim);
      EXPECT_EQ(difference(rows, model.table(t).rows), "");
      for (const Model::Slot& slot : model.table(t).slots)
        EXPECT_EQ(difference(variable(engine, *table.name + "/" + slot.name, table.vocabulary_size,
                                      slot.width),
                             slot.values),
                  "");
    }
  }
  EXPECT_GE(spoilt, 100);
}

/// One way in which gradients reach rows.
struct Road {
  std::int32_t dim = 16;
  Optimizer rule = Optimizer("adagrad", 0.1);
  std::int64_t rows = 3000;
  bool hot = false;  ///< one id has half of all entries
  std::int32_t hosts = 1;
};

/// Digest after two steps in which every third sample has weights that cancel, with gradients of 1
/// elsewhere and of `at_zeros` there; "" if a row is no number.
std::string digest_with(const Road& road, std::int32_t workers, float at_zeros) {
  constexpr std::int64_t kSamples = 9000;
  StrategyOptions strategy;
  strategy.hosts = road.hosts;
  strategy.replicas_per_host = 2 / road.hosts;
  strategy.executor = std::make_shared<TestExecutor>(1, workers);
  const TablePtr table = make_table({.vocabulary_size = road.rows,
                                     .dim = road.dim,
                                     .initializer = Initializer::uniform(-1, 1, 7),
                                     .optimizer = {},
                                     .combiner = Combiner::kMean,
                                     .name = "t"});
  Embedding engine(Nested<FeatureConfig>(feature(table)), road.rule, make_strategy(strategy));
  Ids ids, splits = {0};
  F weights;
  for (std::int64_t i = 0; i < kSamples; ++i) {
    ids.push_back(road.hot ? 7 % road.rows : i % road.rows);
    ids.push_back(i * 31 % road.rows);
    weights.insert(weights.end(), {1, i % 3 == 0 ? -1.0f : 0.5f});
    splits.push_back(std::ssize(ids));
  }
  const Batch batch{Nested<FeatureIds>(RaggedIds{splits, ids}),
                    Nested<FeatureWeights>(RaggedWeights{weights})};
  engine.build(Nested<Shape>(Shape{kSamples}));
  for (int step = 0; step < 2; ++step) {
    train(engine, std::vector<Batch>(2, batch),
          [&](const Activation& a, std::int64_t, std::int32_t) {
            F gradient(a.values.size(), 1);
            for (std::int64_t i = 0; i < kSamples * road.dim; ++i)
              if (i / road.dim % 3 == 0) gradient[i] = at_zeros;
            return gradient;
          });
  }
  for (const float x : variable(engine, "t", road.rows, road.dim))
    if (!std::isfinite(x)) return "";
  return engine.digest();
}

TEST(ZeroDenominators, ReachNoRowOnAnyRoad) {
  const Optimizer each_entry("sgd", 0.1, {}, {.use_gradient_accumulation = false});
  const Road roads[] = {{},                                           // fused with the sum
                        {.dim = 20},                                  // tiles
                        {.dim = 64, .rule = Optimizer("adam", 0.1)},  // tiles
                        {.dim = 32, .rows = 8},
                        {.hot = true},
                        {.dim = 24, .hot = true},
                        {.dim = 8, .rule = each_entry},
                        {.hot = true, .hosts = 2},
                        {.dim = 20, .hosts = 2},
                        {.dim = 8, .rule = each_entry, .hosts = 2}};
  for (const Road& road : roads) {
    SCOPED_TRACE("dim " + std::to_string(road.dim) + ", " + road.rule.to_string() + ", rows " +
                 std::to_string(road.rows) + (road.hot ? ", hot" : "") + ", hosts " +
                 std::to_string(road.hosts));
    const std::string zeros = digest_with(road, 1, 0);
    EXPECT_NE(zeros, "");
    for (const std::int32_t workers : {1, 4})
      for (const float at_zeros : {-1.0f, no_number(0), no_number(1), no_number(2)})
        EXPECT_EQ(digest_with(road, workers, at_zeros), zeros) << at_zeros;
  }
}

}  // namespace
}  // namespace embertable
