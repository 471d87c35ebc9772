// Rules of the caller's own, and the rule that hands gradients on, through the engine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>

#include "testing/engine/batches.h"
#include "testing/temporary_directory.h"

namespace embertable {
namespace {

using namespace engine_fixture;  // NOLINT: the vocabulary of these tests
using testing::HasSubstr;

EmbeddingOptions finely_cut(bool pipelined = false) {
  EmbeddingOptions options;
  options.tuning = {.bucket_bytes = 64, .inline_floats = 0};
  options.pipeline_execution_with_tensor_core = pipelined;
  return options;
}

/// Adagrad's step of one element.
void adagrad_step(float g, float& w, float& a, float rate) {
  const float square = g * g;
  a = a + square;
  const float n = rate * g;
  w = w - (n == 0 ? 0.0f : n / std::sqrt(a));
}

CustomRule adagrad_by_tiles() {
  return {.name = "my_adagrad",
          .slot_names = {"accumulators"},
          .slot_initializers = {Initializer::constant(0.1f)},
          .function = CustomRule::Tiles([](const CustomTile& tile) {
            for (std::size_t r = 0; r < tile.row.size(); ++r)
              for (std::int32_t c = 0; c < tile.dim; ++c)
                adagrad_step(tile.gradient[r][c], tile.row[r][c], tile.slot[0][r][c],
                             tile.step.learning_rate);
          })};
}
CustomRule adagrad_by_rows() {
  CustomRule rule = adagrad_by_tiles();
  rule.function = CustomRule::Rows([](const CustomRow& row) {
    for (std::size_t c = 0; c < row.row.size(); ++c)
      adagrad_step(row.gradient[c], row.row[c], row.slot[0][c], row.step.learning_rate);
  });
  return rule;
}
Optimizer adagrad_by_elements(OptimizerOptions options) {
  return user_defined_program(
      4, 2,
      [](std::span<const float> in, std::span<float> out) {
        out[0] = in[1], out[1] = in[2];
        adagrad_step(in[0], out[0], out[1], in[3]);
      },
      0.5, {Initializer::constant(0.1f)}, std::move(options));
}

/// Two steps of four replicas on the fixture's tables: rows and slots.
std::vector<F> trained(const Optimizer& optimizer, const std::string& slot, std::int32_t hosts) {
  Embedding engine = engine_with(accelerator(4, hosts), features(), optimizer, finely_cut());
  const auto data = owned(4);
  for (int step = 0; step < 2; ++step) {
    train(engine, ragged_batches(data), [](const Activation& a, std::int64_t, std::int32_t r) {
      F gradient(a.values.begin(), a.values.end());
      for (float& g : gradient) g = g / 16 - static_cast<float>(r);
      return gradient;
    });
  }
  return {variable(engine, "video", 8, 4), variable(engine, "user", 16, 2),
          variable(engine, "video/" + slot, 8, 4), variable(engine, "user/" + slot, 16, 2)};
}

TEST(CustomRules, GiveTheBitsOfTheLibrarysOwn) {
  OptimizerOptions limits;
  limits.clip_gradient_min = -0.5;
  limits.clip_gradient_max = 2;
  limits.weight_decay_factor = 0.125;
  limits.multiply_weight_decay_factor_by_learning_rate = true;
  limits.clip_weight_max = 20;
  for (const OptimizerOptions& options :
       {OptimizerOptions{}, OptimizerOptions{.use_gradient_accumulation = false}, limits}) {
    for (const std::int32_t hosts : {1, 2, 4}) {
      const auto expected =
          trained(Optimizer("adagrad", 0.5, {{"initial_accumulator_value", 0.1}}, options),
                  "accumulators", hosts);
      EXPECT_EQ(trained(Optimizer::custom(adagrad_by_tiles(), 0.5, options), "accumulators", hosts),
                expected);
      EXPECT_EQ(trained(Optimizer::custom(adagrad_by_rows(), 0.5, options), "accumulators", hosts),
                expected);
      EXPECT_EQ(trained(adagrad_by_elements(options), "Slot_0", hosts), expected);
    }
  }
}

TEST(CustomRules, TakeWideRowsWithLimits) {
  OptimizerOptions options;
  options.clip_gradient_max = 0.5;
  for (const std::int32_t dim : {300, 4096}) {
    const auto run = [&](const Optimizer& optimizer) {
      Embedding engine =
          engine_with(accelerator(), one_zero_table(40, dim), optimizer, finely_cut());
      Ids ids;
      for (std::int64_t i = 0; i < 40; ++i) ids.push_back(i);
      train(engine, batch_of(DenseIds{ids, {}}), filled(1));
      return variable(engine, "t", 40, dim);
    };
    EXPECT_EQ(run(Optimizer::custom(adagrad_by_tiles(), 0.5, options)),
              run(Optimizer("adagrad", 0.5, {{"initial_accumulator_value", 0.1}}, options)));
  }
}

TEST(CustomRules, AreToldTheStepTheRateAndTheirNumbers) {
  CustomRule rule{.name = "told",
                  .slot_names = {"last"},
                  .slot_initializers = {Initializer::zeros()},
                  .slot_dims = {1},
                  .hyperparameters = {{"beta", 0.25}},
                  .function = CustomRule::Rows([](const CustomRow& row) {
                    row.slot[0][0] = static_cast<float>(row.step.number);
                    row.row[0] = row.step.learning_rate + row.step.hyperparameters[0];
                  })};
  Embedding engine = engine_with(accelerator(), one_zero_table(3, 1), Optimizer::custom(rule, 2));
  const Ids one = {1};
  for (int step = 0; step < 3; ++step) train(engine, batch_of(DenseIds{one, {}}), filled(1));
  EXPECT_EQ(variable(engine, "t/last", 3, 1), (F{0, 3, 0}));
  EXPECT_EQ(variable(engine, "t", 3, 1), (F{0, 2.25f, 0}));
}

TEST(CustomRules, StandInCheckpointsByTheNamesOfTheirSlots) {
  const TemporaryDirectory directory;
  const Optimizer optimizer = Optimizer::custom(adagrad_by_rows(), 0.5);
  const auto make = [&] {
    return engine_with(accelerator(), one_zero_table(5, 3), optimizer, finely_cut());
  };
  Embedding engine = make();
  const Ids ids = {1, 4, 1};
  train(engine, batch_of(DenseIds{ids, {}}), filled(1));
  engine.save(directory.path());
  Embedding restored = make();
  const RestoreReport report = restored.restore(directory.path());
  EXPECT_TRUE(report.missing.empty());
  EXPECT_TRUE(report.extra.empty());
  restored.build(3);
  EXPECT_EQ(restored.digest(), engine.digest());
  train(engine, batch_of(DenseIds{ids, {}}), filled(1));
  train(restored, batch_of(DenseIds{ids, {}}), filled(1));
  EXPECT_EQ(restored.digest(), engine.digest());
}

TEST(CustomRules, ThatThrowLeaveTheEngineFailedUntilARestore) {
  for (const bool pipelined : {false, true}) {
    for (const std::int32_t hosts : {1, 2}) {
      std::atomic<bool> fails = false;
      CustomRule rule{.name = "moody", .function = CustomRule::Rows([&](const CustomRow& row) {
                                         if (fails && row.gradient[0] > 100)
                                           throw std::runtime_error("not today");
                                         row.row[0] -= row.gradient[0];
                                       })};
      StrategyOptions strategy;
      strategy.hosts = hosts;
      strategy.executor = make_thread_pool(3);
      Embedding engine(one_zero_table(100, 1), Optimizer::custom(rule, 1), make_strategy(strategy),
                       finely_cut(pipelined));
      Ids ids;
      for (std::int64_t i = 0; i < 100; ++i) ids.push_back(i);
      const std::vector<Batch> batches(hosts, batch_of(DenseIds{ids, {}}));
      train(engine, batches, filled(1));
      const TemporaryDirectory directory;
      engine.save(directory.path());
      const std::string digest = engine.digest();

      fails = true;
      const auto large = [](const Activation& a, std::int64_t, std::int32_t) {
        F gradient(a.values.size(), 1);
        gradient[70] = 1000;
        return gradient;
      };
      EXPECT_EQ(refusal<std::runtime_error>([&] {
                  train(engine, batches, large);
                  engine.digest();
                }),
                "not today");
      EXPECT_THAT(refusal<StateError>([&] { engine.digest(); }), HasSubstr("not today"));
      fails = false;
      engine.restore(directory.path());
      EXPECT_EQ(engine.digest(), digest);
      train(engine, batches, filled(1));
      EXPECT_EQ(engine.step(), 2);
      EXPECT_EQ(row(engine, "t", 99, 1), F{-2.0f * static_cast<float>(hosts)});
    }
  }
}

// The rule that hands gradients on.

TEST(NoneRule, GivesIdsAndTheirSummedGradients) {
  for (const bool pipelined : {false, true}) {
    for (const std::int32_t hosts : {1, 2, 4}) {
      for (const Sharding sharding : {Sharding::kDiv, Sharding::kMod}) {
        Embedding engine = engine_with(accelerator(4, hosts, sharding), features(),
                                       Optimizer("none", 0), finely_cut(pipelined));
        engine.build(2);
        EXPECT_EQ(engine.gradient_sums("video").step, 0);
        const auto data = owned(4);
        for (int step = 0; step < 2; ++step) train(engine, ragged_batches(data), filled(1));
        const GradientSumsOfTable video_sums = engine.gradient_sums("video");
        EXPECT_EQ(video_sums.step, 2);
        EXPECT_EQ(video_sums.ids, (Ids{0, 1}));
        EXPECT_EQ(video_sums.sums, (F{12, 12, 12, 12, 12, 12, 12, 12}));
        const GradientSumsOfTable user_sums = engine.gradient_sums("user");
        EXPECT_EQ(user_sums.ids, (Ids{0, 1, 2, 3}));
        EXPECT_EQ(user_sums.sums[6], 4);
        EXPECT_NEAR(user_sums.sums[0], 4.0 / 3, 1e-6);
        for (std::int64_t id = 0; id < 8; ++id)
          EXPECT_EQ(row(engine, "video", id, 4)[0], static_cast<float>(4 * id));
      }
    }
  }
}

TEST(NoneRule, HasNoSumsOnceAnotherStepIsRestored) {
  const TemporaryDirectory directory;
  Embedding engine = engine_with(accelerator(2, 2), features(), Optimizer("none", 0));
  const auto data = owned(2);
  train(engine, ragged_batches(data), filled(1));
  engine.save(directory.path());
  train(engine, ragged_batches(data), filled(1));
  EXPECT_EQ(engine.gradient_sums("video").step, 2);
  engine.restore(directory.path());
  EXPECT_EQ(engine.gradient_sums("video").step, 0);
  EXPECT_EQ(engine.gradient_sums("video").ids, Ids());
}

TEST(NoneRule, GivesTheBitsThatOtherRulesStepWith) {
  // With a rate of 1 a row of zeros becomes the negated sum.
  Ids ids;
  for (std::int64_t i = 0; i < 3000; ++i) ids.push_back(i * i % 501);
  const auto gradient = [](const Activation& a, std::int64_t, std::int32_t) {
    F values;
    for (std::size_t i = 0; i < a.values.size(); ++i)
      values.push_back(1.0f / static_cast<float>(i + 3));
    return values;
  };
  for (const std::int32_t hosts : {1, 2}) {
    const std::vector<Batch> batches(2, batch_of(DenseIds{ids, {}}));
    Embedding summing = engine_with(accelerator(2, hosts), one_zero_table(501, 7),
                                    Optimizer("none", 0), finely_cut());
    Embedding stepping =
        engine_with(accelerator(2, hosts), one_zero_table(501, 7), sgd(1), finely_cut());
    train(summing, batches, gradient);
    train(stepping, batches, gradient);
    const GradientSumsOfTable sums = summing.gradient_sums("t");
    F rows(sums.sums.size());
    stepping.read_rows("t", sums.ids, rows);
    for (float& x : rows) x = -x;
    EXPECT_EQ(sums.sums, rows);
    EXPECT_EQ(static_cast<std::int64_t>(sums.ids.size()),
              stepping.last_step().tables[0].unique_rows);
  }
}

TEST(NoneRule, OnlyGivesSumsOfItsOwnTables) {
  Embedding engine = engine_with(accelerator(), one_zero_table(3, 1), sgd(1));
  EXPECT_THROW(engine.gradient_sums("t"), StateError);
  engine.build(1);
  EXPECT_EQ(refusal<ValueError>([&] { engine.gradient_sums("t"); }),
            "gradient_sums: 't' must be a table whose rule is none, its rule is sgd");
  EXPECT_THAT(refusal<KeyError>([&] { engine.gradient_sums("u"); }), HasSubstr("no variable 'u'"));
}

}  // namespace
}  // namespace embertable
