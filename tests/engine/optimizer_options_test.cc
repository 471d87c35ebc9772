// What is common to all rules, through the engine: steps without accumulation, rules that step
// every row, rates, first values of slots, the policy for gradients that are no numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "embertable/tensorflow/tpu_embedding_configuration.h"
#include "testing/engine/batches.h"
#include "testing/executor.h"
#include "testing/temporary_directory.h"

namespace embertable {
namespace {

using namespace engine_fixture;  // NOLINT: the vocabulary of these tests
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Every step is cut into many items, none of them inline.
EmbeddingOptions cut_finely() {
  EmbeddingOptions options;
  options.tuning = {.bucket_bytes = 64, .inline_floats = 0};
  return options;
}

struct Form {
  std::int32_t replicas = 1, hosts = 1;
  Sharding sharding = Sharding::kDiv;
  std::string text() const {
    return std::to_string(replicas) + " replicas, " + std::to_string(hosts) + " hosts, sharding " +
           std::to_string(static_cast<int>(sharding));
  }
};

/// One host, and more in both shardings.
std::vector<Form> forms(std::int32_t replicas) {
  std::vector<Form> all = {{replicas, 1, Sharding::kDiv}};
  for (std::int32_t hosts = 2; hosts <= replicas; hosts *= 2)
    for (const Sharding sharding : {Sharding::kDiv, Sharding::kMod})
      all.push_back({replicas, hosts, sharding});
  return all;
}

Embedding one_table_engine(const Form& form, std::int64_t rows, std::int32_t dim,
                           const Optimizer& optimizer, EmbeddingOptions options = cut_finely()) {
  return engine_with(accelerator(form.replicas, form.hosts, form.sharding),
                     one_zero_table(rows, dim), optimizer, std::move(options));
}

// Without accumulation.

OptimizerOptions entry_by_entry() { return {.use_gradient_accumulation = false}; }

TEST(Accumulation, OffEveryEntryIsAStepOfItsOwn) {
  OptimizerOptions decaying = entry_by_entry();
  decaying.weight_decay_factor = 0.5;
  Embedding engine = one_table_engine({}, 4, 1, Optimizer("sgd", 1, {}, decaying));
  engine.build(4);
  const Ids ids = {1, 1, 2, 1}, row = {1, 2};
  engine.assign_rows("t", row, F{8, 16});
  train(engine, batch_of(DenseIds{ids, {}}), filled(1));
  // 8 - 4 - 1 = 3; 3 - 1.5 - 1 = 0.5; 0.5 - 0.25 - 1 = -0.75
  EXPECT_EQ(variable(engine, "t", 4, 1), (F{0, -0.75f, 7, 0}));
  EXPECT_EQ(engine.last_step().tables[0].unique_rows, 2);
}

TEST(Accumulation, OffTakesReplicasFeaturesAndOutputsInOrder) {
  // A row that becomes its gradient keeps the last one.
  CustomRule assign{.name = "assigning", .function = CustomRule::Rows([](const CustomRow& row) {
                                           std::copy(row.gradient.begin(), row.gradient.end(),
                                                     row.row.begin());
                                         })};
  const Optimizer optimizer = Optimizer::custom(assign, 0, entry_by_entry());
  for (const Form& form : forms(4)) {
    SCOPED_TRACE(form.text());
    Embedding engine = engine_with(accelerator(form.replicas, form.hosts, form.sharding),
                                   features(), optimizer, cut_finely());
    const auto data = owned(4);
    float number = 0;
    train(engine, ragged_batches(data), [&](const Activation& a, std::int64_t, std::int32_t) {
      F gradient(a.values.size());
      const std::size_t dim = a.shape.dims().back();
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        if (i % dim == 0) ++number;
        gradient[i] = number;
      }
      return gradient;
    });
    // Replica 3's samples are {0, 1}, {1} and {0}, {0, 1}, numbered 19, 20 and 21, 22.
    EXPECT_EQ(row(engine, "video", 0, 4), F(4, 22));
    EXPECT_EQ(row(engine, "video", 1, 4), F(4, 22));
    EXPECT_EQ(row(engine, "video", 2, 4), (F{8, 9, 10, 11}));
  }
}

TEST(Accumulation, OffEqualsStepsOfOneEntryEach) {
  // 40 samples of one id each in one step, and in 40 steps.
  Ids ids;
  for (std::int64_t i = 0; i < 40; ++i) ids.push_back(i * i % 7);
  for (const std::int32_t dim : {1, 3, 16, 33, 64}) {
    const Optimizer off("rowwise_adagrad", 0.5, {}, entry_by_entry()), on("rowwise_adagrad", 0.5);
    Embedding together = one_table_engine({}, 7, dim, off);
    Embedding apart = one_table_engine({}, 7, dim, on, {.variable_batch = true});
    apart.build(40);
    const auto gradient = [&](std::int64_t sample) {
      return F(static_cast<std::size_t>(dim), 1.0f / static_cast<float>(sample + 3));
    };
    train(together, batch_of(DenseIds{ids, {}}), [&](const Activation&, auto, auto) {
      F all;
      for (std::int64_t i = 0; i < 40; ++i) {
        const F one = gradient(i);
        all.insert(all.end(), one.begin(), one.end());
      }
      return all;
    });
    for (std::int64_t i = 0; i < 40; ++i) {
      const Ids one = {ids[i]};
      train(apart, batch_of(DenseIds{one, {}}),
            [&](const Activation&, auto, auto) { return gradient(i); });
    }
    EXPECT_EQ(together.digest(), apart.digest()) << "dim " << dim;
  }
}

// Rules that step every row.

/// Row-wise counter of steps; the row sums its gradients and then shrinks.
Optimizer counting_every_row(OptimizerOptions options = {}) {
  CustomRule rule{.name = "counting",
                  .slot_names = {"counts"},
                  .slot_initializers = {Initializer::zeros()},
                  .slot_dims = {1},
                  .function = CustomRule::Rows([](const CustomRow& row) {
                    row.slot[0][0] += 1;
                    for (std::size_t c = 0; c < row.row.size(); ++c) row.row[c] += row.gradient[c];
                  }),
                  .steps_every_row = true};
  return Optimizer::custom(rule, 0.5, std::move(options));
}

TEST(EveryRow, StepsOncePerStepWhetherNamedOrNot) {
  for (const bool pipelined : {false, true}) {
    for (const Form& form : forms(4)) {
      SCOPED_TRACE(form.text());
      EmbeddingOptions options = cut_finely();
      options.pipeline_execution_with_tensor_core = pipelined;
      Embedding engine = one_table_engine(form, 1001, 3, counting_every_row(), options);
      const Ids ids = {5, 1000, 5, 17};
      for (int step = 0; step < 3; ++step)
        train(engine, std::vector<Batch>(4, batch_of(DenseIds{ids, {}})), filled(1));
      EXPECT_THAT(variable(engine, "t/counts", 1001, 1), Each(3));
      F expected(3003, 0);
      for (std::size_t c = 0; c < 3; ++c)
        expected[15 + c] = 24, expected[51 + c] = expected[3000 + c] = 12;
      EXPECT_EQ(variable(engine, "t", 1001, 3), expected);
    }
  }
}

TEST(EveryRow, TakesAStepWithoutAnyId) {
  for (const Form& form : forms(2)) {
    SCOPED_TRACE(form.text());
    Embedding engine = one_table_engine(form, 7, 2, counting_every_row());
    engine.build(3);
    const Ids splits = {0, 0, 0, 0}, none;
    const Batch empty = batch_of(RaggedIds{splits, none});
    train(engine, std::vector<Batch>(2, empty), filled(1));
    EXPECT_EQ(variable(engine, "t/counts", 7, 1), F(7, 1));
    EXPECT_EQ(variable(engine, "t", 7, 2), F(14, 0));
  }
}

TEST(EveryRow, ClipsAndDecaysRowsThatNoIdNames) {
  Embedding engine = one_table_engine(
      {}, 3, 1,
      counting_every_row(
          {.clip_gradient_min = 0.25, .weight_decay_factor = 0.5, .clip_weight_max = 4}));
  engine.build(1);
  const Ids all = {0, 1, 2}, one = {1};
  engine.assign_rows("t", all, F{2, 2, 100});
  train(engine, batch_of(DenseIds{one, {}}), filled(1));
  EXPECT_EQ(variable(engine, "t", 3, 1), (F{1.25f, 2, 4}));
}

TEST(EveryRow, NeitherThreadsNorOrderShow) {
  const auto digest = [](std::shared_ptr<Executor> executor, std::int64_t inline_floats) {
    StrategyOptions strategy;
    strategy.executor = std::move(executor);
    EmbeddingOptions options = cut_finely();
    options.tuning.inline_floats = inline_floats;
    Embedding engine(one_zero_table(5000, 40), counting_every_row(), make_strategy(strategy),
                     options);
    Ids ids;
    for (std::int64_t i = 0; i < 900; ++i) ids.push_back(i * 31 % 4999);
    for (int step = 0; step < 2; ++step) train(engine, batch_of(DenseIds{ids, {}}), filled(0.1f));
    return engine.digest();
  };
  const std::string expected = digest(make_inline_executor(), 1 << 30);
  EXPECT_EQ(digest(make_thread_pool(3), 0), expected);
  EXPECT_EQ(digest(std::make_shared<TestExecutor>(test_seed(), 4), 0), expected);
}

// Rates.

TEST(Rates, Case079_AScheduleGetsTheNumberOfTheStep) {
  const Optimizer optimizer("sgd", LearningRate::scheduled([](std::int64_t step) {
                              return std::max(0.5, 1 - 0.05 * static_cast<double>(step - 1));
                            }));
  Embedding engine = one_table_engine({}, 2, 1, optimizer);
  const Ids one = {1};
  std::vector<double> sums = {-1, -1.95, -2.85};
  for (const double sum : sums) {
    train(engine, batch_of(DenseIds{one, {}}), filled(1));
    EXPECT_NEAR(row(engine, "t", 1, 1)[0], sum, 1e-6);
  }
}

TEST(Rates, AScheduleGoesOnAfterARestore) {
  std::vector<std::int64_t> asked;
  const Optimizer optimizer("sgd", LearningRate::scheduled([&](std::int64_t step) {
                              asked.push_back(step);
                              return 1.0;
                            }));
  const TemporaryDirectory directory;
  const Ids one = {1};
  const auto train_two = [&](Embedding& engine) {
    for (int i = 0; i < 2; ++i) train(engine, batch_of(DenseIds{one, {}}), filled(1));
  };
  Embedding engine = one_table_engine({}, 2, 1, optimizer);
  train_two(engine);
  engine.save(directory.path());
  Embedding other = one_table_engine({}, 2, 1, optimizer);
  other.restore(directory.path());
  train_two(other);
  EXPECT_EQ(asked, (std::vector<std::int64_t>{1, 2, 3, 4}));
}

/// Two tables; what their rates and step counters are.
Nested<FeatureConfig> two_tables(const Optimizer& first, const Optimizer& second) {
  const auto table = [](const char* name, const Optimizer& optimizer) {
    return make_table({.vocabulary_size = 4,
                       .dim = 1,
                       .initializer = Initializer::zeros(),
                       .optimizer = optimizer,
                       .combiner = Combiner::kSum,
                       .name = name});
  };
  return Nested<FeatureConfig>::tuple(
      {feature(table("one", first)), feature(table("two", second))});
}

/// Tags of a table's rate and step counter.
std::pair<std::int32_t, std::int32_t> tags_of(const wire::TPUEmbeddingConfiguration& configuration,
                                              std::size_t table) {
  const wire::OptimizationParameters& parameters =
      configuration.table_descriptor[table].optimization_parameters.value();
  const auto& counting = std::get<wire::FrequencyAwareAdagradParameters>(parameters.parameters);
  const auto& rate = parameters.learning_rate.value().learning_rate;
  return {std::get<wire::OptimizerDynamicInput>(rate).tag, counting.step_counter.value().tag};
}

TEST(Rates, HaveTagsByObjectInTableOrderStepCountersIncluded) {
  int asked_f = 0, asked_g = 0, asked_h = 0;
  const LearningRate f = LearningRate::dynamic([&] { return 1.0 + 0 * ++asked_f; });
  const LearningRate g = LearningRate::scheduled([&](std::int64_t) { return 1.0 + 0 * ++asked_g; });
  const LearningRate h = LearningRate::dynamic([&] { return -1.0 + 0 * ++asked_h; });
  constexpr const char* kRule = "frequency_aware_adagrad";
  Embedding engine(two_tables(Optimizer(kRule, f, {}, {.step_counter = h}),
                              Optimizer(kRule, g, {}, {.step_counter = f})),
                   {}, accelerator());
  engine.build(1);
  const wire::TPUEmbeddingConfiguration configuration = engine.configuration();
  EXPECT_EQ(tags_of(configuration, 0), std::pair(0, 1));
  EXPECT_EQ(tags_of(configuration, 1), std::pair(2, 0));
  const Ids one = {1};
  const Batch batch = {
      Nested<FeatureIds>::tuple({FeatureIds(DenseIds{one, {}}), FeatureIds(DenseIds{one, {}})}),
      {}};
  train(engine, batch, filled(1));
  EXPECT_EQ(asked_f, 1);
  EXPECT_EQ(asked_g, 1);
  EXPECT_EQ(asked_h, 1);
}

TEST(Rates, ThatNoStepCanTakeAreRefusedBeforeAnythingChanges) {
  for (const auto& [given, text] :
       {std::pair(std::nan(""), "nan"), std::pair(-0.5, "-0.5"), std::pair(1e39, "1e+39")}) {
    double value = 1;
    const Optimizer optimizer("sgd", LearningRate::dynamic([&] { return value; }));
    Embedding engine = one_table_engine({}, 2, 1, optimizer);
    const Ids one = {1};
    train(engine, batch_of(DenseIds{one, {}}), filled(1));
    engine.enqueue(batch_of(DenseIds{one, {}}));
    const Activations activations = engine.dequeue();
    const Gradients ones(activations, filled(1));
    value = given;
    EXPECT_EQ(refusal<ValueError>([&] { engine.apply_gradients(ones.all()); }),
              std::string("table 't': learning_rate must be finite and >= 0, its function gave ") +
                  text + " for step 2");
    EXPECT_EQ(engine.step(), 1);
    value = 1;
    engine.apply_gradients(ones.all());
    EXPECT_EQ(row(engine, "t", 1, 1), F{-2});
  }
}

TEST(Rates, AStepCounterMayBeNegativeButNotInfinite) {
  double counter = -3;
  const OptimizerOptions options = {.step_counter = LearningRate::dynamic([&] { return counter; })};
  Embedding engine =
      one_table_engine({}, 2, 1, Optimizer("frequency_aware_adagrad", 1, {}, options));
  const Ids one = {1};
  train(engine, batch_of(DenseIds{one, {}}), filled(1));
  counter = HUGE_VAL;
  EXPECT_EQ(refusal<ValueError>([&] {
              train(engine, batch_of(DenseIds{one, {}}), filled(1));
            }),
            "table 't': step_counter must be finite, its function gave inf for step 2");
}

TEST(Rates, OfAStepCounterAreAskedForRulesThatCountSteps) {
  std::int64_t asked = 0;
  const OptimizerOptions options = {
      .step_counter = LearningRate::dynamic([&] { return static_cast<double>(++asked); })};
  Embedding engine = one_table_engine({}, 2, 1, Optimizer("sgd", 1, {}, options));
  const Ids one = {1};
  train(engine, batch_of(DenseIds{one, {}}), filled(1));
  EXPECT_EQ(asked, 0);
}

// First values of slots.

OptimizerOptions slots_from(SlotInitializer function) {
  return {.slot_variable_creation_fn =
              std::make_shared<const SlotInitializer>(std::move(function))};
}

TEST(ConfigCases, Case31_AFunctionGivesSlotsTheirFirstValues) {
  std::vector<std::string> asked;
  const OptimizerOptions options =
      slots_from([&](const TableConfig& table, std::string_view slot, bool row_wise) {
        asked.push_back(*table.name + "/" + std::string(slot) + (row_wise ? " row-wise" : ""));
        return Initializer::zeros();
      });
  Embedding engine(
      two_tables(Optimizer("adagrad", 0.1, {}, options),
                 Optimizer("rowwise_adagrad", 0.1, {{"initial_accumulator_value", 0.5}}, options)),
      {}, accelerator());
  EXPECT_EQ(asked, (std::vector<std::string>{"one/accumulators", "two/accumulators row-wise"}));
  engine.build(1);
  EXPECT_EQ(variable(engine, "one/accumulators", 4, 1), F(4, 0));
  EXPECT_EQ(variable(engine, "two/accumulators", 4, 1), F(4, 0));
  EXPECT_EQ(asked.size(), 2u);
}

TEST(SlotCreation, ValuesFallIntoTheirRowsWhateverTheSharding) {
  const OptimizerOptions options = slots_from(
      [](const TableConfig&, std::string_view, bool) { return Initializer::row_id(10); });
  for (const Form& form : forms(4)) {
    Embedding engine = one_table_engine(form, 6, 2, Optimizer("adagrad", 0.1, {}, options));
    engine.build(1);
    EXPECT_EQ(variable(engine, "t/accumulators", 6, 2),
              (F{10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15}));
  }
}

OptimizerOptions slots_of_values(const F& values) {
  return slots_from(
      [=](const TableConfig&, std::string_view, bool) { return Initializer::values(values); });
}

TEST(ConfigCases, Case33_AnEmptySlotFunctionIsRefused) {
  EXPECT_EQ(refusal<ValueError>([] { Optimizer("adagrad", 0.1, {}, slots_from(nullptr)); }),
            "adagrad: slot_variable_creation_fn must have a function, got none");
}

// Case 32 of the configuration too.
TEST(EngineCases, Case094_Config32_OnlyPlainEnginesTakeSlotsThatAreThereAlready) {
  const F ready = {1, 2, 3, 4, 5, 6, 7, 8};
  const Optimizer optimizer("adagrad", 0.1, {}, slots_of_values(ready));
  EXPECT_EQ(refusal<ValueError>([&] { one_table_engine({}, 4, 2, optimizer); }),
            "slot 't/accumulators': with a strategy slots are filled shard by shard, so "
            "slot_variable_creation_fn must give a function of rows, got the array values(8)");
  Embedding plain(one_zero_table(4, 2), optimizer, nullptr);
  plain.build();
  EXPECT_EQ(variable(plain, "t/accumulators", 4, 2), ready);
}

TEST(SlotCreation, RefusesValuesOfAnotherSizeNamingTheSlot) {
  EXPECT_EQ(refusal<ValueError>([] {
              Embedding(one_zero_table(4, 2),
                        Optimizer("adagrad", 0.1, {}, slots_of_values({1, 2, 3})), nullptr);
            }),
            "table 't/accumulators': initializer must have vocabulary_size * dim values, 4 * 2, "
            "got 3");
}

// Gradients that are no numbers.

EmbeddingOptions finite_only() {
  EmbeddingOptions options = cut_finely();
  options.gradient_policy = GradientPolicy::kError;
  return options;
}

TEST(GradientPolicy, NamesWhereItIsAndWhatItWouldReach) {
  for (const Form& form : forms(4)) {
    SCOPED_TRACE(form.text());
    Embedding engine = engine_with(accelerator(form.replicas, form.hosts, form.sharding),
                                   features(), sgd(0.5), finite_only());
    const auto data = owned(4);
    train(engine, ragged_batches(data), filled(0));
    engine.enqueue(ragged_batches(data));
    const Activations activations = engine.dequeue();
    for (const float bad : {kNan, kInfinity, -kInfinity}) {
      const Gradients gradients(
          activations, [&](const Activation& a, std::int64_t feature, std::int32_t replica) {
            F gradient(a.values.size(), 1);
            if (feature == 2 && replica == 3) gradient[3] = bad;
            return gradient;
          });
      const std::string digest = engine.digest();
      try {
        engine.apply_gradients(gradients.all());
        FAIL() << "no error";
      } catch (const DataError& error) {
        EXPECT_EQ(std::string(error.what()),
                  "feature '2', replica 3, sample 1: the gradient must be finite, got " +
                      std::string(std::isnan(bad) ? "nan"
                                  : bad > 0       ? "inf"
                                                  : "-inf") +
                      " in column 1; in step 2 it would reach row 0 of table 'user'");
        EXPECT_EQ(error.where().feature, "2");
        EXPECT_EQ(error.where().replica, 3);
        EXPECT_EQ(error.where().sample, 1);
        EXPECT_EQ(error.where().position, 3);
      }
      EXPECT_EQ(engine.digest(), digest);
    }
    engine.apply_gradients(Gradients(activations, filled(1)).all());
    EXPECT_EQ(engine.step(), 2);
  }
}

TEST(GradientPolicy, ChecksWhatADoubleBecomes) {
  Embedding engine = one_table_engine({}, 2, 1, sgd(1), finite_only());
  const Ids one = {1};
  engine.enqueue(batch_of(DenseIds{one, {}}));
  const Activations activations = engine.dequeue();
  const std::vector<double> large = {1e39};
  const Nested<Gradient> gradient(Gradient{FloatSpan(large), activations(0).shape});
  EXPECT_THAT(refusal<DataError>([&] { engine.apply_gradients(gradient); }),
              HasSubstr("must be finite, got inf"));
}

TEST(GradientPolicy, WithoutOneANanStaysInItsRow) {
  for (const Form& form : forms(2)) {
    Embedding engine = one_table_engine(form, 40, 5, Optimizer("rowwise_adagrad", 0.5));
    Ids ids;
    for (std::int64_t i = 0; i < 40; ++i) ids.push_back(i);
    train(engine, std::vector<Batch>(2, batch_of(DenseIds{ids, {}})),
          [](const Activation& a, auto, std::int32_t replica) {
            F gradient(a.values.size(), 1);
            if (replica == 1) gradient[17 * 5 + 2] = kNan;
            return gradient;
          });
    const F rows = variable(engine, "t", 40, 5);
    for (std::size_t i = 0; i < rows.size(); ++i)
      EXPECT_EQ(std::isnan(rows[i]), i / 5 == 17) << "element " << i;
  }
}

}  // namespace
}  // namespace embertable
