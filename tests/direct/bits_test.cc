// Direct lookups and steps give an engine's bits, on any number of replicas and threads.
#include <gtest/gtest.h>

#include "base/random.h"
#include "testing/engine/reference_model.h"
#include "testing/executor.h"
#include "testing/serving/direct_lookups.h"

namespace embertable {
namespace {

using namespace engine_fixture;  // NOLINT: the vocabulary of these tests

/// Random ragged ids of one feature, with weights if there are any.
struct RandomIds {
  Ids values, splits = {0};
  F weights;

  RandomIds(std::int64_t samples, std::int64_t most, std::int64_t rows, bool weighted,
            std::uint64_t seed) {
    std::uint64_t next = 0;
    const auto below = [&](std::int64_t n) {
      return static_cast<std::int64_t>(random_bits(seed, next++, 0) %
                                       static_cast<std::uint64_t>(n));
    };
    for (std::int64_t s = 0; s < samples; ++s) {
      const std::int64_t count = below(most + 1);
      for (std::int64_t k = 0; k < count; ++k) {
        values.push_back(below(4) == 0 ? below(3) % rows : below(rows));
        if (weighted) weights.push_back(static_cast<float>(below(17) - 8) / 4);
      }
      splits.push_back(static_cast<std::int64_t>(values.size()));
    }
  }
  FeatureIds ids() const { return RaggedIds{splits, values}; }
  FeatureWeights given() const {
    return weights.empty() ? FeatureWeights() : FeatureWeights(RaggedWeights{weights});
  }
};

/// What both classes are given: four features on three tables, one of them shared, one a sequence.
struct Program {
  std::int64_t samples = 5;
  std::int64_t rows = 40;
  std::int32_t dim = 16;
  std::int32_t replicas = 1;
  Optimizer optimizer = Optimizer("sgd", 0.1);
  RowType row_type = RowType::kFloat32;

  Nested<FeatureConfig> features() const {
    const auto table = [&](std::string name, Combiner combiner) {
      return make_table({.vocabulary_size = rows,
                         .dim = dim,
                         .initializer = Initializer::uniform(-1, 1, 7),
                         .optimizer = {},
                         .combiner = combiner,
                         .name = std::move(name),
                         .row_type = row_type});
    };
    const TablePtr shared = table("shared", Combiner::kMean);
    return Nested<FeatureConfig>::tuple({feature(shared), feature(table("own", Combiner::kSqrtN)),
                                         feature(shared),
                                         feature(table("sequence", Combiner::kSum), 2)});
  }
};

struct StepInputs4 {
  std::vector<std::unique_ptr<RandomIds>> kept;
  std::vector<Batch> batches;

  StepInputs4(const Program& program, std::uint64_t step) {
    for (std::int32_t r = 0; r < program.replicas; ++r) {
      std::vector<FeatureIds> ids;
      std::vector<FeatureWeights> weights;
      for (std::uint64_t f = 0; f < 4; ++f) {
        const std::uint64_t seed = (step * 64 + static_cast<std::uint64_t>(r)) * 4 + f;
        kept.push_back(std::make_unique<RandomIds>(program.samples, 3, program.rows, f < 2, seed));
        ids.push_back(kept.back()->ids());
        weights.push_back(kept.back()->given());
      }
      const Structure tuple = program.features().structure();
      batches.push_back({Nested<FeatureIds>(tuple, ids), Nested<FeatureWeights>(tuple, weights)});
    }
  }
};

/// Some function of the activation; of one feature there is none at times.
F gradient_of(const Activation& activation, std::int64_t feature, std::int32_t replica) {
  if (feature == 2 && replica % 2 == 1) return {};
  F gradient(activation.values.begin(), activation.values.end());
  for (std::size_t i = 0; i < gradient.size(); ++i)
    gradient[i] = gradient[i] * 0.75f - 0.125f * static_cast<float>(i % 5 + feature);
  return gradient;
}

StrategyPtr strategy_of(std::int32_t replicas, std::shared_ptr<Executor> executor) {
  StrategyOptions options;
  options.replicas_per_host = replicas;
  options.executor = std::move(executor);
  return make_strategy(options);
}

/// Digest after some steps of an engine, whose activations the direct ones must be.
void expect_engines_bits(const Program& program, std::shared_ptr<Executor> executor) {
  const StrategyPtr strategy = strategy_of(program.replicas, executor);
  Embedding engine(program.features(), program.optimizer, strategy);
  DirectEmbedding direct(program.features(), program.optimizer, strategy);
  std::vector<LookupOutput> lookups(program.replicas);
  for (std::uint64_t step = 0; step < 3; ++step) {
    const StepInputs4 inputs(program, step);
    const Activations want = train(engine, inputs.batches, gradient_of);
    direct.embedding_lookup(inputs.batches, lookups);
    for (std::int32_t r = 0; r < program.replicas; ++r)
      for (std::int64_t f = 0; f < 4; ++f)
        ASSERT_EQ(difference(lookups[r](f).values, want(f, r).values), "");
    direct.apply_gradients(lookups, DirectGradients(lookups, gradient_of).all());
    ASSERT_EQ(direct.digest(), engine.digest()) << "step " << step;
  }
  EXPECT_EQ(direct.step(), engine.step());
}

std::vector<Optimizer> optimizers() {
  OptimizerOptions limited;
  limited.clip_gradient_min = -0.5;
  limited.clip_gradient_max = 0.75;
  limited.weight_decay_factor = 0.125;
  OptimizerOptions by_entry;
  by_entry.use_gradient_accumulation = false;
  return {Optimizer("sgd", 0.1),
          Optimizer("adagrad", 0.1),
          Optimizer("adam", 0.1),
          Optimizer("rowwise_adagrad", 0.1),
          Optimizer("ftrl", LearningRate::scheduled([](std::int64_t n) { return 0.5 / n; })),
          Optimizer("adam", 0.1, {{"lazy_adam", false}}),
          Optimizer("adagrad", 0.1, {}, limited),
          Optimizer("adagrad", 0.1, {}, by_entry)};
}

TEST(DirectBits, AreAnEnginesForEveryRuleReplicaAndThreadCount) {
  for (const Optimizer& optimizer : optimizers())
    for (const std::int32_t replicas : {1, 2, 5})
      for (const std::int32_t threads : {1, 2, 4}) {
        SCOPED_TRACE(optimizer.to_string() + ", " + std::to_string(replicas) + " replicas, " +
                     std::to_string(threads) + " threads");
        expect_engines_bits({.replicas = replicas, .optimizer = optimizer},
                            make_thread_pool(threads));
      }
}

TEST(DirectBits, AreAnEnginesForRowsOfBfloat16) {
  for (const Optimizer& optimizer : optimizers())
    for (const std::int32_t dim : {1, 7, 33})
      expect_engines_bits(
          {.dim = dim, .replicas = 2, .optimizer = optimizer, .row_type = RowType::kBfloat16},
          make_thread_pool(2));
}

TEST(DirectBits, AreAnEnginesForEveryDim) {
  for (const std::int32_t dim : {1, 3, 20, 64})
    expect_engines_bits({.dim = dim, .replicas = 2, .optimizer = Optimizer("adagrad", 0.1)},
                        make_inline_executor());
}

/// Sums are cut at 4,096 output rows; entries fall into many buckets.
TEST(DirectBits, AreAnEnginesForLongBatches) {
  for (const std::int64_t rows : {3, 30000})
    for (const std::int32_t threads : {1, 4})
      expect_engines_bits(
          {.samples = 9000, .rows = rows, .replicas = 2, .optimizer = Optimizer("adagrad", 0.1)},
          make_thread_pool(threads));
}

TEST(DirectBits, DoNotHangOnTheOrderOfWork) {
  for (const std::uint64_t seed : {1, 2, 3})
    expect_engines_bits({.samples = 3000, .rows = 5000, .replicas = 3},
                        std::make_shared<TestExecutor>(seed, 3));
}

/// The rule none hands out what the engine sums up.
TEST(DirectBits, GradientsAreAnEnginesSums) {
  const Program program{
      .samples = 5000, .rows = 300, .replicas = 3, .optimizer = Optimizer("none", 0)};
  const StrategyPtr strategy = strategy_of(3, make_thread_pool(3));
  Embedding engine(program.features(), program.optimizer, strategy);
  DirectEmbedding direct(program.features(), std::nullopt, strategy);
  const StepInputs4 inputs(program, 0);
  train(engine, inputs.batches, gradient_of);
  const auto lookups = direct.embedding_lookup(inputs.batches);
  const auto gradients = direct.gradients(lookups, DirectGradients(lookups, gradient_of).all());
  ASSERT_EQ(gradients.size(), 3u);
  for (const auto& [table, got] : gradients) {
    const GradientSumsOfTable want = engine.gradient_sums(*table->name);
    EXPECT_EQ(got.ids, want.ids);
    EXPECT_EQ(difference(got.sums, want.sums), "");
  }
}

/// And so does the pure function for one replica.
TEST(DirectBits, GradientsOfAPlainLookupAreAnEnginesSums) {
  const Program program{.samples = 5000, .rows = 300, .optimizer = Optimizer("none", 0)};
  const auto features = program.features();
  Embedding engine(features, program.optimizer, accelerator());
  Embedding plain(features, {}, nullptr);
  const StepInputs4 inputs(program, 3);
  const auto tables = plain.embedding_tables();
  std::vector<LookupOutput> lookup;
  lookup.push_back(serving_embedding_lookup(inputs.batches[0], tables, features));
  train(engine, inputs.batches, gradient_of);
  const DirectGradients upstream(lookup, gradient_of);
  for (const auto& [table, got] :
       serving_embedding_gradients(inputs.batches[0], upstream.all()[0], tables, features)) {
    const GradientSumsOfTable want = engine.gradient_sums(*table->name);
    EXPECT_EQ(got.ids, want.ids);
    EXPECT_EQ(difference(got.sums, want.sums), "");
  }
}

}  // namespace
}  // namespace embertable
