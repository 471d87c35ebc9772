// Engine cases A to C: construction, build and shapes, calls out of order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "embertable/tensorflow/tpu_embedding_configuration.h"
#include "testing/engine/batches.h"
#include "testing/engine/fixture.h"
#include "testing/executor.h"

namespace embertable {
namespace {

using namespace engine_fixture;  // NOLINT: the vocabulary of these tests
using testing::HasSubstr;

TablePtr named(std::string name, std::int64_t rows = 8, std::int32_t dim = 4) {
  return make_table({.vocabulary_size = rows,
                     .dim = dim,
                     .initializer = {},
                     .optimizer = {},
                     .combiner = Combiner::kSum,
                     .name = std::move(name)});
}

TablePtr unnamed(std::optional<Optimizer> optimizer = {}) {
  return make_table({.vocabulary_size = 8,
                     .dim = 4,
                     .initializer = counting(),
                     .optimizer = std::move(optimizer),
                     .combiner = Combiner::kSum,
                     .name = {}});
}

std::vector<std::string> names(const Embedding& engine) {
  std::vector<std::string> all;
  for (const TableInfo& table : engine.tables()) all.push_back(table.name);
  return all;
}

TEST(EngineConstruction, WarnsOfTablesWithoutANameOfTheirOwn) {
  std::vector<std::string> warnings;
  EmbeddingOptions options;
  options.log = [&](std::string_view text) { warnings.emplace_back(text); };
  const auto of = Nested<FeatureConfig>::list({feature(named("video")), feature(unnamed())});
  const Embedding engine(of, std::nullopt, nullptr, options);
  EXPECT_EQ(warnings, (std::vector<std::string>{"table 'table_1' has no name of its own"}));
}

TEST(EngineConstruction, ADimOfZeroIsNotAnUnknownOne) {
  Embedding engine = engine_with(accelerator(), one_feature(Combiner::kSum));
  engine.build(Nested<Shape>(Shape{0, 1}));
  EXPECT_EQ(engine.output_shapes()[0], Shape{0});
  const std::vector<std::int64_t> ids = {5};
  EXPECT_THAT(refusal<ValueError>([&] {
                engine.enqueue(Batch{Nested<FeatureIds>(DenseIds{ids, Shape{1}}), {}});
              }),
              HasSubstr("(0)"));
}

TEST(EngineConstruction, OutputShapesThatNoBatchCouldHaveAreRefusedBeforeTablesAreBuilt) {
  for (const Shape& shape : {Shape{std::int64_t{1} << 31}, Shape{1 << 16, 1 << 15, 7}}) {
    Embedding engine = engine_with(accelerator(), one_feature(Combiner::kSum));
    EXPECT_THAT(refusal<ValueError>([&] { engine.build(Nested<Shape>(shape)); }),
                HasSubstr("fewer than 2^31 output rows per replica"));
    EXPECT_FALSE(engine.built());
    engine.build(Nested<Shape>(Shape{2}));
    EXPECT_EQ(engine.output_shapes()[0], Shape{2});
  }
}

TEST(EngineConstruction, AnInputShapeOfRankOneIsTheOutputShape) {
  Embedding engine = engine_with(accelerator(), one_feature(Combiner::kSum));
  engine.build(Nested<Shape>(Shape{3}));
  EXPECT_EQ(engine.output_shapes()[0], Shape{3});
}

TEST(EngineCases, Case001_Config22_TwoTablesOfOneNameAreRefused) {
  for (const StrategyPtr& strategy : {accelerator(), StrategyPtr()}) {
    const auto of = Nested<FeatureConfig>::list({feature(named("table")), feature(named("table"))});
    EXPECT_THAT(refusal<ValueError>([&] { engine_with(strategy, of); }), HasSubstr("'table'"));
  }
}

// A foreign optimizer cannot be expressed; an unknown rule is as near as it gets.
TEST(EngineCases, Case002_Config26_AnUnknownRuleIsRefusedByName) {
  EXPECT_THAT(refusal<ValueError>([] { Optimizer("adagard", 0.1); }), HasSubstr("adagard"));
  EXPECT_THAT(refusal<ValueError>([] { unnamed(Optimizer("v1.Adam", 0.1)); }),
              HasSubstr("v1.Adam"));
}

TEST(EngineCases, Case003_Config27_OnlyPlainEnginesMayLackAnOptimizer) {
  EXPECT_THAT(refusal<ValueError>([] { Embedding(features(), std::nullopt, accelerator()); }),
              HasSubstr("'video'"));
  Embedding plain(features(), std::nullopt, nullptr);
  plain.build();
  for (const TableInfo& table : plain.tables()) EXPECT_TRUE(table.slots.empty()) << table.name;
  EXPECT_EQ(row(plain, "video", 1, 4), (std::vector<float>{4, 5, 6, 7}));
  EXPECT_THROW(plain.read_rows("video/accumulators", std::vector<std::int64_t>{0}, {}), KeyError);
}

TEST(EngineCases, Case004_Config25_ATablesOwnOptimizerWins) {
  const TablePtr videos = make_table({.vocabulary_size = 8,
                                      .dim = 4,
                                      .initializer = counting(),
                                      .optimizer = sgd(0.2),
                                      .combiner = Combiner::kSum,
                                      .name = "video"});
  Embedding engine = engine_with(accelerator(), features(videos), sgd(0.1));
  using Samples = std::vector<std::vector<std::int64_t>>;
  const Rows watched(Samples{{0}}), favorited(Samples{{}}), friends(Samples{{3}});
  engine.enqueue(
      Batch{Nested<FeatureIds>::tuple({FeatureIds(watched.ragged()), FeatureIds(favorited.ragged()),
                                       FeatureIds(friends.ragged())}),
            {}});
  const Activations activations = engine.dequeue();
  std::vector<std::vector<float>> storage;
  storage.reserve(3);
  engine.apply_gradients(all(activations, storage, 1.0f));
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_FLOAT_EQ(row(engine, "video", 0, 4)[i], static_cast<float>(i) - 0.2f);
  EXPECT_FLOAT_EQ(row(engine, "user", 3, 2)[0], 5.9f);
  EXPECT_FLOAT_EQ(row(engine, "user", 3, 2)[1], 6.9f);
}

TEST(EngineCases, Case005_Config23_UnnamedTablesAreNamedByPosition) {
  const auto two = Nested<FeatureConfig>::list({feature(unnamed()), feature(unnamed())});
  EXPECT_EQ(names(engine_with(accelerator(), two)),
            (std::vector<std::string>{"table_0", "table_1"}));
  for (const auto& [first, second] :
       {std::pair(named("table_1"), unnamed()), std::pair(unnamed(), named("table_0"))}) {
    const auto taken = Nested<FeatureConfig>::list({feature(first), feature(second)});
    const std::string name = first->name ? *first->name : *second->name;
    EXPECT_THAT(refusal<ValueError>([&] { engine_with(accelerator(), taken); }), HasSubstr(name));
  }
  const auto free = Nested<FeatureConfig>::list({feature(unnamed()), feature(named("table_1"))});
  EXPECT_EQ(names(engine_with(accelerator(), free)),
            (std::vector<std::string>{"table_0", "table_1"}));
}

TEST(EngineCases, Case006_Config21_TablesInOrderOfFirstOccurrence) {
  const TablePtr t1 = named("T1"), t2 = named("T2");
  const auto of =
      Nested<FeatureConfig>::map({{"b", feature(t1)}, {"a", feature(t2)}, {"c", feature(t1)}});
  EXPECT_EQ(of.structure().paths(), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(names(engine_with(accelerator(), of)), (std::vector<std::string>{"T2", "T1"}));
}

TEST(EngineCases, Case007_EqualConfigurationsGiveEqualRecords) {
  std::vector<LearningRate> dynamic;
  for (int i = 0; i < 30; ++i) dynamic.push_back(LearningRate::dynamic([] { return 0.1; }));
  const auto record = [&] {
    std::vector<FeatureConfig> leaves;
    std::vector<Structure> forms(30);
    for (std::size_t i = 0; i < 30; ++i) {
      const auto dim = static_cast<std::int32_t>(1 + random_bits(test_seed(1), i, 0) % 127);
      std::optional<Optimizer> own;
      if (dim % 2 == 0) own = Optimizer("adagrad", dynamic[i]);
      leaves.push_back(feature(make_table({.vocabulary_size = static_cast<std::int64_t>(
                                               100 + random_bits(test_seed(1), i, 1) % 900),
                                           .dim = dim,
                                           .initializer = {},
                                           .optimizer = own,
                                           .combiner = Combiner::kMean,
                                           .name = {}})));
    }
    Embedding engine =
        engine_with(accelerator(), Nested<FeatureConfig>(Structure::list(forms), leaves));
    engine.build(128);
    return engine.configuration();
  };
  const wire::TPUEmbeddingConfiguration first = record();
  EXPECT_EQ(first, record());
  EXPECT_EQ(wire::serialize(first), wire::serialize(record()));
  EXPECT_EQ(first.feature_descriptor[29].input_shape, std::vector<std::int32_t>{128});
}

/// The tag of each table's dynamic rate.
std::vector<std::int32_t> rate_tags(const wire::TPUEmbeddingConfiguration& configuration) {
  std::vector<std::int32_t> tags;
  for (const wire::TableDescriptor& table : configuration.table_descriptor) {
    const auto& rate = table.optimization_parameters.value().learning_rate.value().learning_rate;
    tags.push_back(std::get<wire::OptimizerDynamicInput>(rate).tag);
  }
  return tags;
}

TEST(EngineCases, Case008_RatesAreTaggedByFirstUse) {
  int f_calls = 0, g_calls = 0;
  const LearningRate f = LearningRate::dynamic([&] { return ++f_calls, 0.1; });
  const LearningRate g = LearningRate::dynamic([&] { return ++g_calls, 0.1; });
  const auto table = [](const LearningRate& rate) {
    return feature(unnamed(Optimizer("sgd", rate)));
  };
  Embedding engine =
      engine_with(accelerator(), Nested<FeatureConfig>::list({table(f), table(g), table(f)}));
  const std::vector<std::int64_t> ids = {1};
  const FeatureIds one = DenseIds{ids, {}};
  engine.enqueue(Batch{Nested<FeatureIds>::list({one, one, one}), {}});
  const Activations activations = engine.dequeue();
  std::vector<std::vector<float>> storage;
  storage.reserve(3);
  engine.apply_gradients(all(activations, storage, 1.0f));
  EXPECT_EQ(rate_tags(engine.configuration()), (std::vector<std::int32_t>{0, 1, 0}));
  EXPECT_EQ(f_calls, 1);
  EXPECT_EQ(g_calls, 1);
}

TEST(EngineCases, Case008_TagsRiseWithTheTables) {
  std::vector<FeatureConfig> leaves;
  for (int i = 0; i < 5; ++i)
    leaves.push_back(feature(unnamed(Optimizer("sgd", LearningRate::dynamic([] { return 0.1; })))));
  Embedding engine = engine_with(
      accelerator(), Nested<FeatureConfig>(Structure::list(std::vector<Structure>(5)), leaves));
  engine.build(1);
  EXPECT_EQ(rate_tags(engine.configuration()), (std::vector<std::int32_t>{0, 1, 2, 3, 4}));
}

TEST(EngineCases, Case009_ConfigurationsKeepNothingOfAnEngine) {
  const auto of = features();
  const Embedding first(of, sgd(0.1), nullptr);
  const Embedding second(of, Optimizer("adam", 0.1), nullptr);
  EXPECT_TRUE(first.tables()[0].slots.empty());
  ASSERT_EQ(second.tables()[0].slots.size(), 2u);
  EXPECT_EQ(second.tables()[0].slots[0].name, "momenta");
  EXPECT_EQ(second.tables()[0].slots[1].name, "velocities");
  EXPECT_FALSE(of[0].table->optimizer.has_value());
}

TEST(EngineCases, Case010_EveryHostOwnsARowInTheRecord) {
  Embedding engine = engine_with(accelerator(4, 4), Nested<FeatureConfig>(feature(named("t", 2))));
  engine.build(1);
  using Configuration = wire::TPUEmbeddingConfiguration;
  const Configuration record = engine.configuration();
  EXPECT_EQ(record.table_descriptor[0].vocabulary_size, 4);
  EXPECT_EQ(record.num_hosts, 4);
  EXPECT_EQ(record.mode, Configuration::Mode::kTraining);
  EXPECT_EQ(record.sharding_strategy, Configuration::ShardingStrategy::kDivDefault);
}

TEST(EngineCases, Case012_AStrategyHoldsOneBuiltEngine) {
  const StrategyPtr strategy = accelerator();
  Embedding first = engine_with(strategy), second = engine_with(strategy);
  first.build(2);
  EXPECT_THAT(refusal<StateError>([&] { second.build(64); }), HasSubstr("already"));
  EXPECT_FALSE(second.built());
  strategy->initialize();
  EXPECT_THROW(row(first, "video", 0, 4), StateError);
  Embedding third = engine_with(strategy);
  third.build(2);
  EXPECT_TRUE(first.built());
  const OwnedBatch data(0);
  const auto step = [&] { first.look_up(data.ragged()); };
  EXPECT_THROW(step(), StateError);
}

TEST(EngineCases, Case013_PlainEnginesLiveSideBySide) {
  const auto of = features();
  Embedding first(of, std::nullopt, nullptr), second(of, std::nullopt, nullptr);
  first.build();
  second.build();
  EXPECT_NE(first.embedding_tables().begin()->second.data,
            second.embedding_tables().begin()->second.data);
}

TEST(EngineCases, Case014_ABuiltEngineIgnoresBuild) {
  Embedding engine = engine_with(accelerator());
  engine.build(64);
  engine.build(three({}, Shape::scalar(), {3}));
  engine.build(7);
  EXPECT_EQ(engine.output_shapes()[0], Shape{64});
}

Nested<FeatureConfig> with_shape(const Shape& shape, std::int64_t length = 0) {
  const TablePtr videos = video();
  return Nested<FeatureConfig>::tuple({feature(videos, length, shape),
                                       feature(videos, length, shape),
                                       feature(user(), length, shape)});
}

TEST(EngineCases, Case015_AnInputThatContradictsTheConfiguration) {
  Embedding engine = engine_with(accelerator(), with_shape({2, 4}));
  const std::string text = refusal<ValueError>([&] {
    engine.build(three({1, 1, 1}, {1, 1, 1}, {1, 1, 1}));
  });
  EXPECT_THAT(text, HasSubstr("'0'"));
  EXPECT_THAT(text, HasSubstr("(2, 4)"));
  EXPECT_THAT(text, HasSubstr("(1, 1)"));
}

TEST(EngineCases, Case016_AnUnknownShapeCannotBeBuilt) {
  Embedding engine = engine_with(accelerator());
  EXPECT_THAT(refusal<ValueError>([&] { engine.build(); }), HasSubstr("'0'"));
}

TEST(EngineCases, Case017_APartlyKnownInputCannotBeBuilt) {
  Embedding engine = engine_with(accelerator());
  const Shape partly = {1, -1, -1};
  EXPECT_THAT(refusal<ValueError>([&] { engine.build(three(partly, partly, partly)); }),
              HasSubstr("'0'"));
}

TEST(EngineCases, Case018_TheConfiguredShapeStays) {
  Embedding engine = engine_with(accelerator(), with_shape({2, 4}));
  const Shape partly = {2, -1, -1};
  engine.build(three(partly, partly, partly));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(engine.output_shapes()[i], (Shape{2, 4}));
}

TEST(EngineCases, Case019_DimsAreMergedOnlyOnRequest) {
  const auto of = with_shape({2, -1});
  const Nested<Shape> inputs = three({2, 4, 7}, {2, 4, 7}, {2, 4, 7});
  Embedding strict = engine_with(accelerator(), of);
  EXPECT_THROW(strict.build(inputs), ValueError);
  EmbeddingOptions options;
  options.merge_partial_shapes = true;
  Embedding merging = engine_with(accelerator(), of, sgd(0.1), options);
  merging.build(inputs);
  EXPECT_EQ(merging.output_shapes()[0], (Shape{2, 4}));
}

TEST(EngineConstruction, TheLargestFirstBatchCompletesAShapeWhereverItComes) {
  const auto of = Nested<FeatureConfig>(feature(named("a"), 0, {-1, 3}));
  EmbeddingOptions options;
  options.merge_partial_shapes = true;
  options.variable_batch = true;
  const Ids twelve(12, 1), fifteen(15, 1);
  const DenseIds four{twelve, {4, 3, 1}}, five{fifteen, {5, 3, 1}};
  for (const bool first_is_larger : {false, true}) {
    Embedding engine = engine_with(accelerator(2), of, sgd(0.1), options);
    std::vector<Batch> batches = {batch_of(four), batch_of(five)};
    if (first_is_larger) std::swap(batches[0], batches[1]);
    engine.enqueue(batches);
    EXPECT_EQ(engine.output_shapes()[0], (Shape{5, 3}));
  }
  options.variable_batch = false;
  Embedding strict = engine_with(accelerator(2), of, sgd(0.1), options);
  EXPECT_THAT(refusal<ValueError>([&] {
                strict.enqueue(std::vector<Batch>{batch_of(four), batch_of(five)});
              }),
              HasSubstr("replica 1 asks for output shape (5, 3), replica 0 for (4, 3)"));
  EXPECT_FALSE(strict.built());
}

TEST(EngineConstruction, RowsThatStartAsZerosTakeNoMemoryYet) {
  const auto of = Nested<FeatureConfig>(feature(make_table({.vocabulary_size = 1 << 20,
                                                            .dim = 64,
                                                            .initializer = Initializer::zeros(),
                                                            .optimizer = Optimizer("adam", 0.1)})));
  Embedding engine = engine_with(accelerator(), of);
  engine.build(1);
  for (const MemoryReport::Entry& entry : engine.memory().entries)
    EXPECT_LT(entry.resident_bytes, 8 << 20) << entry.name;
}

TEST(EngineConstruction, InputShapesHaveTheStructureOfTheFeatures) {
  const auto of =
      Nested<FeatureConfig>::map({{"item", feature(named("a"))}, {"user", feature(named("b"))}});
  const auto shapes = [](const char* second) {
    return Nested<Shape>::map({{"item", Shape{4, 1}}, {second, Shape{4, 1}}});
  };
  Embedding engine = engine_with(accelerator(), of);
  EXPECT_THAT(refusal<std::exception>([&] { engine.build(shapes("zip")); }),
              HasSubstr("per_replica_input_shapes"));
  EXPECT_FALSE(engine.built());
  engine.build(shapes("user"));
  EXPECT_TRUE(engine.built());
}

TEST(EngineCases, Case020_ShapesFromABatchSize) {
  const auto of = Nested<FeatureConfig>::list(
      {feature(named("a")), feature(named("b"), 3), feature(named("c"), 0, {2, 32})});
  Embedding engine = engine_with(accelerator(), of);
  engine.build(64);
  EXPECT_EQ(engine.output_shapes()[0], Shape{64});
  EXPECT_EQ(engine.output_shapes()[1], (Shape{64, 3}));
  EXPECT_EQ(engine.output_shapes()[2], (Shape{2, 32}));
  Embedding other = engine_with(accelerator(), with_shape(Shape{8}));
  EXPECT_THROW(other.build(4), ValueError);
}

TEST(EngineCases, Case021_InputShapesWinOverABatchSize) {
  Embedding engine = engine_with(accelerator());
  engine.build(three({2, 5}, {2, 5}, {2, 5}), 64);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(engine.output_shapes()[i], Shape{2});
}

TEST(EngineCases, Case022_SequencesFromInputShapes) {
  for (const Nested<Shape>& inputs :
       {three({2, 2}, {2, 2}, {2, 3}), three({2, 3, 2}, {2, 3, 2}, {2, 3, 3})}) {
    Embedding engine = engine_with(accelerator(), with_shape({}, 3));
    engine.build(inputs);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(engine.output_shapes()[i], (Shape{2, 3}));
    const OwnedBatch batch(0);
    engine.enqueue(batch.sparse());
    const Activations activations = engine.dequeue();
    EXPECT_EQ(activations(0).shape, (Shape{2, 3, 4}));
    EXPECT_EQ(activations(1).shape, (Shape{2, 3, 4}));
    EXPECT_EQ(activations(2).shape, (Shape{2, 3, 2}));
  }
}

/// HD data: for each of `outer` indices the whole 4-sample table.
struct HighRank {
  std::vector<std::int64_t> values, indices;
  Shape shape;
  HighRank(const std::vector<std::vector<std::int64_t>>& samples, std::int64_t outer,
           std::int64_t width) {
    for (std::int64_t o = 0; o < outer; ++o) {
      for (std::size_t s = 0; s < samples.size(); ++s) {
        for (std::size_t c = 0; c < samples[s].size(); ++c) {
          values.push_back(samples[s][c]);
          indices.insert(indices.end(),
                         {o, static_cast<std::int64_t>(s), static_cast<std::int64_t>(c)});
        }
      }
    }
    shape = Shape{outer, 4, width};
  }
  FeatureIds ids() const { return SparseIds{indices, values, shape}; }
};

TEST(EngineCases, Case023_MixedShapesAreDetected) {
  Embedding engine = engine_with(accelerator());
  const std::vector<std::int64_t> zeros(3);
  const HighRank favorited(Data().favorited, 2, 2), friends(Data().friends, 2, 3);
  engine.enqueue(Batch{Nested<FeatureIds>::tuple({FeatureIds(DenseIds{zeros, Shape{1, 3, 1}}),
                                                  favorited.ids(), friends.ids()}),
                       {}});
  EXPECT_EQ(engine.output_shapes()[0], (Shape{1, 3}));
  EXPECT_EQ(engine.output_shapes()[1], (Shape{2, 4}));
  EXPECT_EQ(engine.output_shapes()[2], (Shape{2, 4}));
}

TEST(EngineCases, Case025_AFailedBuildLeavesNoTrace) {
  Embedding engine = engine_with(accelerator());
  const Shape partly = {1, -1, -1};
  EXPECT_THROW(engine.build(three(partly, partly, partly)), ValueError);
  engine.build(three({2, 4, 2}, {2, 4, 2}, {2, 4, 3}));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(engine.output_shapes()[i], (Shape{2, 4}));
}

TEST(EngineCases, Case026_Config37_RanksAndNumbersOfShapes) {
  Embedding engine = engine_with(accelerator());
  EXPECT_THROW(engine.build(three(Shape::scalar(), {2}, {2})), ValueError);
  EXPECT_THROW(engine.build(three({}, {2}, {2})), ValueError);
  EXPECT_THROW(engine.build(Nested<Shape>::tuple({Nested<Shape>(Shape{2})})), ValueError);
  EXPECT_FALSE(engine.built());
}

TEST(EngineCases, Case028_APlainEngineRefusesSteps) {
  Embedding engine(features(), sgd(0.1), nullptr);
  const Batch wrong{Nested<FeatureIds>(FeatureIds(DenseIds{})), {}};
  EXPECT_THROW(engine.enqueue(wrong), StateError);
  EXPECT_THROW(engine.dequeue(), StateError);
  EXPECT_THROW(engine.apply_gradients(Nested<Gradient>(Gradient::none())), StateError);
}

TEST(EngineCases, Case029_AnUnbuiltEngineHasNothingToDequeue) {
  Embedding engine = engine_with(accelerator());
  const Gradient none = Gradient::none();
  EXPECT_THROW(engine.dequeue(), StateError);
  EXPECT_THROW(engine.apply_gradients(Nested<Gradient>::tuple({none, none, none})), StateError);
}

TEST(EngineCases, Case030_TablesOfAPlainEngineAreReachable) {
  Embedding accelerated = engine_with(accelerator());
  EXPECT_THROW(accelerated.embedding_tables(), StateError);
  const TablePtr videos = video(), users = user();
  Embedding plain(features(videos, users), sgd(0.1), nullptr);
  const auto tables = plain.embedding_tables();
  ASSERT_EQ(tables.size(), 2u);
  EXPECT_TRUE(plain.built());
  EXPECT_EQ(tables.at(videos).rows, 8);
  EXPECT_EQ(tables.at(users).data[3 * tables.at(users).row_stride + 1], 7.0f);
}

TEST(EngineCases, Case031_WithoutVerificationShapesAreLeftToTheData) {
  Embedding engine = engine_with(accelerator());
  engine.set_verify_output_shapes_on_enqueue(false);
  const OwnedBatch batch(0);
  EXPECT_THROW(engine.enqueue(batch.ragged()), ValueError);
  EXPECT_FALSE(engine.built());
  engine.build(3);
  EXPECT_THROW(engine.enqueue(batch.sparse()), ValueError);
}

TEST(EngineCases, Case032_MisuseIsAnErrorAndTheEngineGoesOn) {
  Embedding engine = engine_with(accelerator());
  const OwnedBatch batch(0);
  engine.build(2);
  std::vector<std::vector<float>> storage;
  storage.reserve(64);
  const auto train = [&] {
    engine.enqueue(batch.ragged());
    const Activations activations = engine.dequeue();
    engine.apply_gradients(all(activations, storage, 0.0f));
  };
  EXPECT_THROW(engine.dequeue(), StateError);
  train();

  engine.enqueue(batch.ragged(), {.name = "first"});
  const Activations activations = engine.dequeue();
  const Nested<Gradient> gradients = all(activations, storage, 0.0f);
  engine.enqueue(batch.ragged());
  EXPECT_THAT(refusal<StateError>([&] { engine.dequeue(); }), HasSubstr("'first'"));
  engine.apply_gradients(gradients);
  engine.dequeue();
  engine.apply_gradients(gradients);
  EXPECT_THROW(engine.apply_gradients(gradients), StateError);  // twice
  train();

  engine.enqueue(batch.ragged(), {.training = false});
  engine.dequeue();
  EXPECT_THROW(engine.apply_gradients(gradients), StateError);  // after an inference batch
  train();

  engine.enqueue(batch.ragged());
  EXPECT_THROW(engine.apply_gradients(gradients), StateError);  // before dequeue
  engine.dequeue();
  engine.apply_gradients(gradients);
  train();
  EXPECT_EQ(row(engine, "video", 1, 4), (std::vector<float>{4, 5, 6, 7}));
}

TEST(EngineCases, Case033_AStepWithoutGradientsChangesNothing) {
  Embedding engine = engine_with(accelerator());
  const OwnedBatch batch(0);
  engine.enqueue(batch.ragged());
  const Activations activations = engine.dequeue();
  EXPECT_EQ(values(activations, 0), (std::vector<float>{0, 1, 2, 3, 4, 6, 8, 10}));
  EXPECT_EQ(values(activations, 1), (std::vector<float>{4, 6, 8, 10, 4, 5, 6, 7}));
  EXPECT_EQ(values(activations, 2), (std::vector<float>{6, 7, 2, 3}));
  for (const std::int64_t id : {0, 1})
    EXPECT_EQ(row(engine, "video", id, 4)[0], static_cast<float>(4 * id));
  EXPECT_EQ(row(engine, "user", 3, 2), (std::vector<float>{6, 7}));
}

}  // namespace
}  // namespace embertable
