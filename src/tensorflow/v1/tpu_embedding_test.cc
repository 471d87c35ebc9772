// The engine of the v1 API: its rules and errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <latch>
#include <thread>

#include "embertable/tensorflow/v1.h"
#include "testing/engine/batches.h"
#include "testing/serving/lookups.h"

namespace embertable::v1 {
namespace {

using engine_fixture::counting;
using engine_fixture::F;
using engine_fixture::Ids;
using testing::AllOf;
using testing::HasSubstr;
using Tables = TPUEmbedding::Tables;
using Features = TPUEmbedding::Features;

const OptimizationParameters kSgd = StochasticGradientDescentParameters{.learning_rate = 0.1};

TableConfig table(std::int64_t rows = 8, std::int32_t dim = 4,
                  std::optional<Combiner> combiner = Combiner::kSum) {
  return {
      .vocabulary_size = rows, .dimension = dim, .initializer = counting(), .combiner = combiner};
}
Tables tables() { return {{"video", table()}, {"user", table(16, 2, Combiner::kMean)}}; }
Features features() {
  return {{"watched", {"video"}}, {"favorited", {"video"}}, {"friends", {"user"}}};
}

Options on(std::int32_t cores, std::int32_t hosts = 1, const std::string& strategy = "div") {
  Options options;
  options.partition_strategy = strategy;
  options.device_config.num_cores = cores;
  options.device_config.num_hosts = hosts;
  options.device_config.executor = make_inline_executor();
  return options;
}

TPUEmbedding engine(std::int64_t batch = 2, Options options = on(1), Mode mode = Mode::kTraining) {
  return TPUEmbedding(tables(), features(), batch, mode,
                      mode == Mode::kTraining ? std::optional(kSgd) : std::nullopt,
                      std::move(options));
}

/// What the constructor throws.
std::string construction_refusal(const Tables& of_tables, const Features& of_features,
                                 const std::optional<OptimizationParameters>& parameters = kSgd,
                                 const Options& options = on(1), std::int64_t batch = 4,
                                 Mode mode = Mode::kTraining) {
  return refusal<ValueError>(
      [&] { TPUEmbedding(of_tables, of_features, batch, mode, parameters, options); });
}

/// The four samples of the cases, core by core.
struct Data {
  explicit Data(std::int32_t cores = 1) : batches(engine_fixture::owned(cores)) {}
  std::vector<TPUEmbedding::FeatureData> sparse() const {
    std::vector<TPUEmbedding::FeatureData> all;
    for (const auto& batch : batches) {
      all.push_back({{"watched", EnqueueData::from_sparse(batch.watched.sparse())},
                     {"favorited", EnqueueData::from_sparse(batch.favorited.sparse())},
                     {"friends", EnqueueData::from_sparse(batch.friends.sparse())}});
    }
    return all;
  }
  std::vector<TPUEmbedding::RaggedFeatureData> ragged() const {
    std::vector<TPUEmbedding::RaggedFeatureData> all;
    for (const auto& batch : batches) {
      all.push_back({{"watched", RaggedEnqueueData::from_ragged(batch.watched.ragged())},
                     {"favorited", RaggedEnqueueData::from_ragged(batch.favorited.ragged())},
                     {"friends", RaggedEnqueueData::from_ragged(batch.friends.ragged())}});
    }
    return all;
  }
  std::vector<engine_fixture::OwnedBatch> batches;
};

/// Ones for every feature of one core, 2 samples.
struct Ones {
  F video = F(8, 1), user = F(4, 1);
  std::vector<TPUEmbedding::FeatureGradients> all() const {
    return {{{"watched", {video, {}}}, {"favorited", {video, {}}}, {"friends", {user, {}}}}};
  }
};

TEST(EngineCases, Case138_TheBatchIsDividedAmongTheCores) {
  EXPECT_THAT(construction_refusal(tables(), features(), kSgd, on(4), 10),
              AllOf(HasSubstr("batch_size"), HasSubstr("10 on 4 cores")));
  EXPECT_THAT(construction_refusal(tables(), features(), kSgd, on(1), 0), HasSubstr("batch_size"));
  EXPECT_THAT(construction_refusal(tables(), features(), kSgd, on(5, 2), 10),
              HasSubstr("5 cores on 2 hosts"));
  const TPUEmbedding four = engine(12, on(4, 2));
  EXPECT_EQ(four.batch_size_per_core(), 3);
  EXPECT_EQ(four.num_hosts(), 2);
}

TEST(V1Configuration, TheBatchOfACoreFits32Bits) {
  const auto refused = [](std::int64_t batch, std::int32_t cores) {
    return construction_refusal(tables(), features(), kSgd, on(cores), batch);
  };
  const std::int64_t limit = std::int64_t{1} << 31;
  EXPECT_EQ(refused(limit, 1),
            "batch_size must be < 2^31 for each core, got 2147483648 on 1 cores");
  EXPECT_EQ(refused(2 * limit, 2),
            "batch_size must be < 2^31 for each core, got 4294967296 on 2 cores");
  EXPECT_EQ(refused(std::int64_t{1} << 61, 1),
            "batch_size must be < 2^31 for each core, got 2305843009213693952 on 1 cores");
}

TEST(EngineCases, Case138_EveryTableIsUsedAndKnown) {
  Tables more = tables();
  more["channel"] = table();
  EXPECT_THAT(construction_refusal(more, features()),
              AllOf(HasSubstr("unused"), HasSubstr("'channel'")));
  Features stranger = features();
  stranger["likes"] = {"channel"};
  EXPECT_THAT(construction_refusal(tables(), stranger),
              AllOf(HasSubstr("unknown"), HasSubstr("'channel'")));
  EXPECT_THAT(construction_refusal({}, {}), HasSubstr("there must be a feature"));
}

TEST(EngineCases, Case138_ThePartitionStrategyIsDivOrMod) {
  EXPECT_THAT(construction_refusal(tables(), features(), kSgd, on(1, 1, "x")),
              AllOf(HasSubstr("partition_strategy"), HasSubstr("'x'")));
}

TEST(EngineCases, Case138_ADynamicRateNeedsTheStep) {
  Tables rated = tables();
  std::vector<std::int64_t> asked;
  rated["user"].learning_rate_fn =
      std::make_shared<const LearningRateFunction>([&asked](std::int64_t step) {
        asked.push_back(step);
        return 0.5;
      });
  TPUEmbedding engine(rated, features(), 2, Mode::kTraining, kSgd, on(1));
  const Data data;
  engine.enqueue(data.ragged());
  engine.get_activations();
  const Ones ones;
  EXPECT_THAT(refusal<ValueError>([&] { engine.send_gradients(ones.all()); }), HasSubstr("step"));
  EXPECT_TRUE(asked.empty());
  engine.send_gradients(ones.all(), 41);
  EXPECT_EQ(asked, (std::vector<std::int64_t>{41}));
  // friends of sample 0 are row 3 alone: 6, 7 less the rate.
  EXPECT_EQ(engine_fixture::row(engine.engine(), "user", 3, 2), (F{5.5f, 6.5f}));
  // Row 0 of video occurs three times, each a step of the optimizer's own rate.
  EXPECT_FLOAT_EQ(engine_fixture::row(engine.engine(), "video", 0, 4)[1], 0.7f);
}

TEST(EngineCases, Case138_InferenceSendsNoGradients) {
  TPUEmbedding inference = engine(2, on(1), Mode::kInference);
  const Data data;
  inference.enqueue(data.ragged());
  EXPECT_EQ(engine_fixture::values(inference.get_activations(), 1), (F{6, 7, 2, 3}));
  const Ones ones;
  EXPECT_THAT(refusal<StateError>([&] { inference.send_gradients(ones.all()); }),
              HasSubstr("inference"));
  EXPECT_THAT(refusal<StateError>([&] { inference.enqueue(data.ragged(), Mode::kTraining); }),
              HasSubstr("inference"));
  EXPECT_EQ(inference.engine().tables()[0].optimizer.substr(0, 4), "sgd(");
  EXPECT_THAT(construction_refusal(tables(), features(), kSgd, on(1), 4, Mode::kInference),
              HasSubstr("optimization_parameters"));
}

TEST(EngineCases, Case138_EveryMapHasEveryFeature) {
  TPUEmbedding two = engine(4, on(2));
  const Data data(2);
  auto missing = data.sparse();
  missing[1].erase("watched");
  EXPECT_THAT(refusal<ValueError>([&] { two.enqueue(missing); }),
              AllOf(HasSubstr("map 1"), HasSubstr("missing {'watched'}")));
  auto extra = data.ragged();
  extra[0]["likes"] = {};
  EXPECT_THAT(refusal<ValueError>([&] { two.enqueue(extra); }),
              AllOf(HasSubstr("map 0"), HasSubstr("unknown {'likes'}")));
  auto one = data.sparse();
  one.pop_back();
  EXPECT_THAT(refusal<ValueError>([&] { two.enqueue(one); }), HasSubstr("2 cores, got 1"));
  EXPECT_FALSE(two.engine().built());

  two.enqueue(data.sparse());
  two.get_activations();
  std::vector<TPUEmbedding::FeatureGradients> gradients(2, Ones().all()[0]);
  gradients[1].erase("friends");
  EXPECT_THAT(refusal<ValueError>([&] { two.send_gradients(gradients); }),
              AllOf(HasSubstr("map 1"), HasSubstr("missing {'friends'}")));
}

TEST(V1Configuration, TrainingNeedsParametersForEveryTable) {
  EXPECT_THAT(construction_refusal(tables(), features(), std::nullopt),
              AllOf(HasSubstr("'user'"), HasSubstr("optimization_parameters")));
  Tables own = tables();
  own["user"].optimization_parameters = kSgd;
  EXPECT_THAT(construction_refusal(own, features(), std::nullopt), HasSubstr("'video'"));
  own["video"].optimization_parameters = AdagradParameters{.learning_rate = 0.2};
  const TPUEmbedding engine(own, features(), 2, Mode::kTraining, std::nullopt, on(1));
  EXPECT_THAT(engine.engine().tables()[0].optimizer, HasSubstr("adagrad(learning_rate=0.2"));
  EXPECT_THAT(construction_refusal(tables(), features(), kSgd, on(1), 4, Mode::kUnspecified),
              HasSubstr("mode"));
}

TEST(V1Configuration, TablesSayWhatIsWrong) {
  const auto refused = [](auto change) {
    Tables some = tables();
    change(some["video"]);
    return construction_refusal(some, features());
  };
  EXPECT_EQ(refused([](TableConfig& t) { t.vocabulary_size = 0; }),
            "table 'video': vocabulary_size must be >= 1, got 0");
  EXPECT_EQ(refused([](TableConfig& t) { t.dimension = 0; }),
            "table 'video': dimension must be 1..4096, got 0");
  EXPECT_THAT(refused([](TableConfig& t) { t.combiner = static_cast<Combiner>(7); }),
              AllOf(HasSubstr("combiner"), HasSubstr("7")));
  EXPECT_THAT(refused([](TableConfig& t) {
                t.learning_rate = 0.0;
                t.learning_rate_fn =
                    std::make_shared<const LearningRateFunction>([](std::int64_t) { return 1.0; });
              }),
              HasSubstr("must not both"));
  EXPECT_THAT(refused([](TableConfig& t) {
                t.learning_rate_fn = std::make_shared<const LearningRateFunction>();
              }),
              HasSubstr("learning_rate_fn"));
  EXPECT_THAT(refused([](TableConfig& t) { t.learning_rate = -1; }),
              AllOf(HasSubstr("'video'"), HasSubstr("learning_rate"), HasSubstr("-1")));
  Features bad = features();
  bad["friends"].max_sequence_length = -1;
  EXPECT_EQ(construction_refusal(tables(), bad),
            "feature 'friends': max_sequence_length must be >= 0, got -1");
  Options varying = on(1);
  varying.engine.variable_batch = true;
  EXPECT_THAT(construction_refusal(tables(), features(), kSgd, varying),
              HasSubstr("variable_batch"));
}

std::string parameters_refusal(const OptimizationParameters& parameters) {
  return refusal<ValueError>([&] { make_optimizer(parameters); });
}

TEST(ConfigCases, Case41_V1AccumulatorsOfZero) {
  EXPECT_EQ(parameters_refusal(AdagradParameters{.learning_rate = 1, .initial_accumulator = 0}),
            "AdagradParameters: initial_accumulator must be > 0, got 0");
  EXPECT_THAT(
      parameters_refusal(ProximalAdagradParameters{.learning_rate = 1, .initial_accumulator = -1}),
      HasSubstr("initial_accumulator must be > 0, got -1"));
  EXPECT_EQ(parameters_refusal(FtrlParameters{.learning_rate = 1, .initial_accumulator_value = 0}),
            "");
  EXPECT_THAT(
      parameters_refusal(FtrlParameters{.learning_rate = 1, .initial_accumulator_value = -1}),
      HasSubstr("initial_accumulator_value must be >= 0, got -1"));
}

TEST(ConfigCases, Case42_V1AdamOutsideItsRanges) {
  EXPECT_THAT(parameters_refusal(AdamParameters{.learning_rate = 1, .beta1 = 1}),
              HasSubstr("beta1 must be in [0, 1), got 1"));
  EXPECT_THAT(parameters_refusal(AdamParameters{.learning_rate = 1, .beta2 = -0.1}),
              HasSubstr("beta2 must be in [0, 1), got -0.1"));
  EXPECT_THAT(parameters_refusal(AdamParameters{.learning_rate = 1, .epsilon = 0}),
              HasSubstr("epsilon must be > 0"));
  EXPECT_THAT(
      parameters_refusal(AdamParameters{
          .learning_rate = 1, .lazy_adam = false, .options = {.use_gradient_accumulation = false}}),
      HasSubstr("lazy_adam"));
}

TEST(ConfigCases, Case45_V1FtrlAndYogiOutsideTheirRanges) {
  EXPECT_THAT(parameters_refusal(FtrlParameters{.learning_rate = 1, .learning_rate_power = 0.1}),
              HasSubstr("learning_rate_power must be <= 0, got 0.1"));
  EXPECT_THAT(
      parameters_refusal(FtrlParameters{.learning_rate = 1, .l1_regularization_strength = -1}),
      HasSubstr("l1_regularization_strength must be >= 0, got -1"));
  EXPECT_THAT(
      parameters_refusal(FtrlParameters{.learning_rate = 1, .l2_regularization_strength = -1}),
      HasSubstr("l2_regularization_strength"));
  EXPECT_THAT(parameters_refusal(ProximalYogiParameters{.beta1 = 1}), HasSubstr("beta1"));
  EXPECT_THAT(parameters_refusal(ProximalYogiParameters{.epsilon = 0}), HasSubstr("epsilon"));
  EXPECT_EQ(parameters_refusal(ProximalYogiParameters{}), "");
}

TEST(ConfigCases, Case46_V1FrequencyEstimatorNeedsDimensionOne) {
  const FrequencyEstimatorParameters frequency = {
      .tau = 0.1, .max_delta = 10, .outlier_threshold = 5, .weight_exponent = 1};
  EXPECT_THAT(construction_refusal({{"t", table(8, 2)}}, {{"f", {"t"}}}, frequency),
              AllOf(HasSubstr("'t'"), HasSubstr("dimension must be 1"), HasSubstr("got 2")));
  const Optimizer optimizer = make_optimizer(frequency);
  EXPECT_EQ(optimizer.learning_rate().constant(), 1);
  EXPECT_TRUE(optimizer.options().use_gradient_accumulation);
}

TEST(V1Parameters, WhatMustBeGivenIsNamed) {
  EXPECT_EQ(parameters_refusal(AdagradParameters{}),
            "AdagradParameters: learning_rate must be given, got nan");
  EXPECT_THAT(parameters_refusal(MomentumParameters{.learning_rate = 1}), HasSubstr("momentum"));
  EXPECT_THAT(parameters_refusal(RMSPropParameters{.learning_rate = 1, .rho = 0.9, .momentum = 0}),
              HasSubstr("epsilon must be given"));
  EXPECT_THAT(parameters_refusal(FrequencyEstimatorParameters{.tau = 0.5}), HasSubstr("max_delta"));
}

TEST(V1Parameters, SgdAccumulatesWhereGradientsHaveLimits) {
  EXPECT_FALSE(make_optimizer(kSgd).options().use_gradient_accumulation);
  EXPECT_TRUE(make_optimizer(StochasticGradientDescentParameters{
                                 .learning_rate = 1, .options = {.clip_gradient_min = -1}})
                  .options()
                  .use_gradient_accumulation);
  EXPECT_THAT(parameters_refusal(AdagradParameters{
                  .learning_rate = 1,
                  .options = {.clip_gradient_max = 1, .use_gradient_accumulation = false}}),
              HasSubstr("use_gradient_accumulation"));
}

TEST(V1Rates, AConstantOfZeroCountsAsNone) {
  Tables rated = tables();
  rated["user"].learning_rate = 0.0;
  rated["video"].learning_rate = 0.5;
  const TPUEmbedding engine(rated, features(), 2, Mode::kTraining, kSgd, on(1));
  const std::vector<TableInfo> info = engine.engine().tables();
  EXPECT_THAT(info[0].optimizer, HasSubstr("learning_rate=0.5"));
  EXPECT_THAT(info[1].optimizer, HasSubstr("learning_rate=0.1"));
}

TEST(V1Rates, TablesThatShareAFunctionAskItOnce) {
  int calls = 0;
  const auto shared = std::make_shared<const LearningRateFunction>([&calls](std::int64_t) {
    ++calls;
    return 0.25;
  });
  Tables rated = tables();
  for (auto& [name, config] : rated) config.learning_rate_fn = shared;
  TPUEmbedding engine(rated, features(), 2, Mode::kTraining, kSgd, on(1));
  const Data data;
  engine.enqueue(data.ragged());
  engine.get_activations();
  engine.send_gradients(Ones().all(), 1);
  EXPECT_EQ(calls, 1);
}

TEST(V1Rates, AFunctionThatEnqueuesIsRefusedWhileAnotherThreadWaitsForRoom) {
  std::string text;
  Tables rated = tables();
  TPUEmbedding* own = nullptr;
  const Data data;
  rated["user"].learning_rate_fn = std::make_shared<const LearningRateFunction>([&](std::int64_t) {
    if (own) text = refusal<StateError>([&] { own->enqueue(data.ragged()); });
    return 0.5;
  });
  TPUEmbedding engine(rated, features(), 2, Mode::kTraining, kSgd, on(1));
  engine.enqueue(data.ragged());
  engine.get_activations();
  constexpr int kBatches = 10;  // more than the queue holds
  std::latch first(1);
  std::thread waiting([&] {
    for (int i = 0; i < kBatches; ++i) {
      engine.enqueue(Data().ragged(), Mode::kInference);
      if (i == 0) first.count_down();
    }
  });
  first.wait();
  own = &engine;
  engine.send_gradients(Ones().all(), 1);
  own = nullptr;
  for (int i = 0; i < kBatches; ++i) engine.get_activations();
  waiting.join();
  EXPECT_THAT(text, HasSubstr("a function that the engine calls"));
}

TEST(V1Rates, AFrequencyEstimatorsRateIsTheStep) {
  TableConfig counted = {.vocabulary_size = 4,
                         .dimension = 1,
                         .initializer = Initializer::constant(100),
                         .combiner = Combiner::kSum};
  counted.learning_rate_fn = std::make_shared<const LearningRateFunction>(
      [](std::int64_t step) { return static_cast<double>(step); });
  TPUEmbedding engine(
      {{"t", counted}}, {{"f", {"t"}}}, 1, Mode::kTraining,
      FrequencyEstimatorParameters{
          .tau = 0.5, .max_delta = 100, .outlier_threshold = 9, .weight_exponent = 1},
      on(1));
  const Ids id = {2};
  const F zero = {0};
  const std::vector<TPUEmbedding::FeatureData> data = {{{"f", {id, {}, {}}}}};
  const std::vector<TPUEmbedding::FeatureGradients> gradients = {{{"f", {zero, {}}}}};
  for (const std::int64_t step : {8, 12}) {
    engine.enqueue(data);
    engine.get_activations();
    engine.send_gradients(gradients, step);
  }
  // 100 -> (100 + 8) / 2 = 54 -> (54 + 4) / 2.
  EXPECT_EQ(engine_fixture::row(engine.engine(), "t", 2, 1), F{29});
  EXPECT_EQ(engine_fixture::row(engine.engine(), "t/last_hit_step", 2, 1), F{12});
}

TEST(V1Engine, ActivationsAreByFeatureAndByTable) {
  TPUEmbedding two = engine(4, on(2));
  const Data data(2);
  two.enqueue(data.sparse());
  const Activations activations = two.get_activations();
  const auto& names = two.layout().features();
  EXPECT_EQ(names[0].name, "favorited");
  EXPECT_EQ(engine_fixture::values(activations, 0, 0), (F{4, 6, 8, 10, 4, 5, 6, 7}));
  EXPECT_EQ(engine_fixture::values(activations, 2, 1), (F{4, 6, 8, 10, 4, 5, 6, 7}));
  const auto of_tables = interleave(two.layout(), activations, 0);
  EXPECT_EQ(two.layout().tables()[0].name, "user");
  EXPECT_EQ(of_tables[0], (F{6, 7, 2, 3}));
  EXPECT_EQ(of_tables[1], (F{4, 6, 8, 10, 0, 1, 2, 3, 4, 5, 6, 7, 4, 6, 8, 10}));
}

TEST(V1Engine, CallsWaitForOtherThreadsNoLongerThanTheirTimeout) {
  TPUEmbedding engine(tables(), features(), 2, Mode::kInference, {}, on(1));
  const Data data;
  const auto none = std::chrono::milliseconds(0);
  // Once several threads have called, calls wait unless they say otherwise.
  std::thread other([&] { engine.enqueue(data.ragged(), Mode::kInference); });
  other.join();
  engine.get_activations(none);
  EXPECT_THAT(refusal<StateError>([&] { engine.get_activations(none); }), HasSubstr("no batch"));
  std::string text;
  while (text.empty())
    text = refusal<StateError>([&] { engine.enqueue(data.ragged(), Mode::kInference, none); });
  EXPECT_THAT(text, HasSubstr("is full"));
}

TEST(V1Engine, ATimeoutHoldsWhileAnotherThreadWaitsLonger) {
  TPUEmbedding engine(tables(), features(), 2, Mode::kInference, {}, on(1));
  const Data data;
  const auto refused = [&](std::chrono::milliseconds timeout) {
    return refusal<StateError>([&] { engine.enqueue(data.ragged(), Mode::kInference, timeout); });
  };
  const auto none = std::chrono::milliseconds(0);
  while (refused(none).empty()) continue;
  std::string text;
  std::thread patient([&] { text = refused(std::chrono::seconds(10)); });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_THAT(refused(none), HasSubstr("is full"));
  engine.get_activations();
  patient.join();
  EXPECT_EQ(text, "") << "the other call is let in";
}

TEST(V1Engine, AnInitializerThatEnqueuesIsRefused) {
  std::optional<TPUEmbedding> one;
  const Data data(1);
  std::string text;
  Tables with_caller = tables();
  with_caller["video"].initializer =
      Initializer::function([&](const RowRange&, std::span<float> out) {
        text = refusal<StateError>([&] { one->enqueue(data.sparse()); });
        std::fill(out.begin(), out.end(), 3.0f);
      });
  one.emplace(with_caller, features(), 2, Mode::kTraining, kSgd, on(1));
  one->enqueue(data.sparse());
  EXPECT_THAT(text, HasSubstr("a function that the engine calls"));
}

TEST(V1Engine, WithoutSamplesThereIsOneIdEach) {
  TPUEmbedding one({{"t", table(8, 2, Combiner::kSum)}},
                   {{"plain", {"t"}}, {"sequence", {"t", 2}}, {"weighted", {"t"}}}, 2,
                   Mode::kInference, std::nullopt, on(1));
  const Ids ids = {3, 1};
  const F weights = {0.5f, 2};
  const std::vector<TPUEmbedding::FeatureData> data = {
      {{"plain", {ids, {}, {}}}, {"sequence", {ids, {}, {}}}, {"weighted", {ids, {}, weights}}}};
  one.enqueue(data);
  const Activations activations = one.get_activations();
  EXPECT_EQ(engine_fixture::values(activations, 0), (F{6, 7, 2, 3}));
  EXPECT_EQ(engine_fixture::values(activations, 1), (F{6, 7, 0, 0, 2, 3, 0, 0}));
  EXPECT_EQ(engine_fixture::values(activations, 2), (F{3, 3.5f, 4, 6}));

  const Ids three = {3, 1, 2};
  auto bad = data;
  bad[0]["plain"].embedding_indices = three;
  EXPECT_THAT(refusal<ValueError>([&] { one.enqueue(bad); }),
              AllOf(HasSubstr("'plain' of core 0"), HasSubstr("must be 2, got 3")));
}

TEST(V1Engine, SampleIndicesComeInAnyOrderAndAreChecked) {
  TPUEmbedding one({{"t", table(8, 1, Combiner::kSum)}}, {{"f", {"t"}}, {"s", {"t", 2}}}, 2,
                   Mode::kInference, std::nullopt, on(1));
  const std::vector<std::int32_t> ids = {5, 3, 1};
  const Ids samples = {1, 7, 0, 1, 1, 0};
  const auto with = [&](IntegerSpan of) {
    return std::vector<TPUEmbedding::FeatureData>{{{"f", {ids, of, {}}}, {"s", {ids, of, {}}}}};
  };
  one.enqueue(with(samples));
  const Activations activations = one.get_activations();
  EXPECT_EQ(engine_fixture::values(activations, 0), (F{3, 6}));
  EXPECT_EQ(engine_fixture::values(activations, 1), (F{0, 3, 1, 0}));  // position 7 is cut off
  const Ids outside = {2, 0, 0, 1, 1, 0}, short_one = {0, 0};
  EXPECT_THAT(refusal<DataError>([&] { one.enqueue(with(outside)); }), HasSubstr("'f'"));
  EXPECT_THAT(refusal<ValueError>([&] { one.enqueue(with(short_one)); }), HasSubstr("'f'"));
}

TEST(V1Engine, ABadFirstBatchBuildsNothing) {
  TPUEmbedding one = engine();
  const Ids ids = {0, 99}, splits = {0, 1}, good = {0, 1, 2};
  const std::vector<TPUEmbedding::RaggedFeatureData> outside = {
      {{"watched", {ids, good, {}}}, {"favorited", {ids, good, {}}}, {"friends", {ids, good, {}}}}};
  EXPECT_THAT(refusal<DataError>([&] { one.enqueue(outside); }), HasSubstr("99"));
  auto fewer = outside;
  fewer[0]["friends"].row_splits = IntegerSpan(splits);
  EXPECT_THAT(refusal<ValueError>([&] { one.enqueue(fewer); }),
              AllOf(HasSubstr("'friends' of core 0"), HasSubstr("3, got 2")));
  EXPECT_FALSE(one.engine().built());
}

TEST(V1Engine, RowsAreSharedOutByTheStrategy) {
  const Tables thirteen = {{"t", table(13, 1)}};
  const Features one = {{"f", {"t"}}};
  const auto ids = [&](const char* strategy) {
    const TPUEmbedding engine(thirteen, one, 5, Mode::kTraining, kSgd, on(5, 5, strategy));
    std::vector<Ids> all;
    for (std::int32_t host = 0; host < 5; ++host) all.push_back(engine.ids_of_host("t", host));
    return all;
  };
  EXPECT_EQ(ids("div"), (std::vector<Ids>{{0, 1, 2}, {3, 4, 5}, {6, 7, 8}, {9, 10}, {11, 12}}));
  EXPECT_EQ(ids("mod"), (std::vector<Ids>{{0, 5, 10}, {1, 6, 11}, {2, 7, 12}, {3, 8}, {4, 9}}));
  const TPUEmbedding engine(thirteen, one, 5, Mode::kTraining, kSgd, on(5, 5));
  EXPECT_THROW(engine.ids_of_host("u", 0), KeyError);
  EXPECT_THROW(engine.ids_of_host("t", 5), ValueError);
}

TEST(V1Engine, FewerRowsThanHostsAreAllThereIsInACheckpoint) {
  const TemporaryDirectory directory;
  const Tables tiny = {{"t", table(2, 1)}};
  TPUEmbedding wide(tiny, {{"f", {"t"}}}, 3, Mode::kTraining, kSgd, on(3, 3, "mod"));
  wide.create_variables();
  EXPECT_TRUE(wide.ids_of_host("t", 2).empty());
  wide.engine().save(directory.path());
  TPUEmbedding narrow({{"t", table(2, 1)}}, {{"f", {"t"}}}, 1, Mode::kTraining, kSgd, on(1));
  narrow.engine().restore(directory.path());
  narrow.create_variables();
  EXPECT_EQ(engine_fixture::variable(narrow.engine(), "t", 2, 1), (F{0, 1}));
}

TEST(V1Engine, ATrainedEngineGoesOnFromItsCheckpoint) {
  const TemporaryDirectory directory;
  const auto adam = [] {
    return TPUEmbedding(tables(), features(), 2, Mode::kTraining,
                        AdamParameters{.learning_rate = 0.1}, on(1));
  };
  const auto train = [](TPUEmbedding& engine) {
    engine.enqueue(Data().ragged());
    engine.get_activations();
    engine.send_gradients(Ones().all());
  };
  TPUEmbedding first = adam();
  train(first);
  first.engine().save(directory.path());
  train(first);
  TPUEmbedding second = adam();
  second.engine().restore(directory.path());
  train(second);
  EXPECT_EQ(first.engine().digest(), second.engine().digest());
}

TEST(V1Engine, GradientsOfTablesAreThoseOfTheirFeatures) {
  TPUEmbedding by_feature = engine(), by_table = engine();
  const Data data;
  const F favorited = {1, 2, 3, 4, 5, 6, 7, 8}, watched = {8, 7, 6, 5, 4, 3, 2, 1},
          friends = {1, -1, 2, -2};
  for (TPUEmbedding* engine : {&by_feature, &by_table}) {
    engine->enqueue(data.ragged());
    engine->get_activations();
  }
  by_feature.send_gradients(
      std::vector<TPUEmbedding::FeatureGradients>{{{"favorited", {favorited, {2, 1, 4}}},
                                                   {"watched", {watched, {2, 4}}},
                                                   {"friends", {friends, {}}}}});
  const auto tensors = interleave(
      by_table.layout(), std::vector<Gradient>{{favorited, {}}, {friends, {}}, {watched, {}}});
  const std::vector<std::span<const float>> one = {tensors[0]};
  EXPECT_THAT(refusal<ValueError>([&] { by_table.send_gradients(one); }), HasSubstr("got 1"));
  const std::vector<std::span<const float>> both = {tensors[0], tensors[1]};
  by_table.send_gradients(both);
  EXPECT_EQ(by_feature.engine().digest(), by_table.engine().digest());
  EXPECT_THAT(refusal<StateError>([&] { by_table.send_gradients(both); }), HasSubstr("apply"));
}

TEST(V1Engine, BatchesMayComeFromAnotherThread) {
  TPUEmbedding ahead = engine(), in_turn = engine();
  const auto step = [](TPUEmbedding& of) {
    of.get_activations();
    of.send_gradients(Ones().all());
  };
  constexpr int kSteps = 30;
  ahead.create_variables();
  std::latch first(1);
  std::thread producer([&] {
    for (int i = 0; i < kSteps; ++i) {
      ahead.enqueue(Data().ragged());
      if (i == 0) first.count_down();
    }
  });
  first.wait();
  for (int i = 0; i < kSteps; ++i) step(ahead);
  producer.join();
  for (int i = 0; i < kSteps; ++i) {
    in_turn.enqueue(Data().sparse());
    step(in_turn);
  }
  EXPECT_EQ(ahead.engine().digest(), in_turn.engine().digest());
}

TEST(V1Engine, AnOverriddenBatchWantsNoGradients) {
  TPUEmbedding one = engine();
  const Data data;
  one.enqueue(data.ragged(), Mode::kInference);
  one.get_activations();
  EXPECT_THROW(one.send_gradients(Ones().all()), StateError);
  one.enqueue(data.ragged(), Mode::kUnspecified);
  one.get_activations();
  one.send_gradients(Ones().all());
  EXPECT_EQ(one.engine().step(), 1);
}

TEST(V1Engine, ATableWithoutCombinerSums) {
  TPUEmbedding one({{"t", table(8, 1, std::nullopt)}}, {{"f", {"t"}}}, 1, Mode::kInference,
                   std::nullopt, on(1));
  const Ids ids = {3, 4}, splits = {0, 2};
  one.enqueue(std::vector<TPUEmbedding::RaggedFeatureData>{{{"f", {ids, splits, {}}}}});
  EXPECT_EQ(engine_fixture::values(one.get_activations(), 0), F{7});
}

}  // namespace
}  // namespace embertable::v1
