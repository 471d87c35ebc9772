// The configuration of an engine, beside what TensorFlow makes of equal tables
// and features.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "embertable/tensorflow/custom_combiner.h"
#include "embertable/tensorflow/optimization_parameters.h"
#include "embertable/tensorflow/tpu_embedding_configuration.h"
#include "testing/engine/fixture.h"
#include "testing/engine/golden_configurations.h"

namespace embertable {
namespace {

using namespace engine_fixture;         // NOLINT: the vocabulary of these tests
using namespace golden_configurations;  // NOLINT
using testing::AllOf;
using testing::HasSubstr;
using wire::TPUEmbeddingConfiguration;

Nested<FeatureConfig> list(std::vector<FeatureConfig> leaves) {
  std::vector<Structure> forms(leaves.size());
  return Nested<FeatureConfig>(Structure::list(std::move(forms)), std::move(leaves));
}

/// An engine as one of the golden file's configurations describes it.
class Described {
 public:
  explicit Described(const Json& config) : config_(config) {
    for (const Json& table : config["tables"]) tables_.push_back(table_of(table));
  }

  TPUEmbeddingConfiguration configuration() {
    StrategyOptions options;
    options.hosts = config_["hosts"];
    options.replicas_per_host = config_["replicas"].get<std::int32_t>() / options.hosts;
    if (!config_["cores_per_replica"].is_null())
      options.cores_per_replica = config_["cores_per_replica"].get<std::int32_t>();
    options.executor = make_inline_executor();
    Embedding engine(features(), optimizer_of(config_["optimizer"], functions_),
                     make_strategy(options),
                     {.pipeline_execution_with_tensor_core = config_["pipeline"]});
    build(engine);
    return engine.configuration();
  }

 private:
  TablePtr table_of(const Json& table) {
    TableConfig config = {.vocabulary_size = table["vocabulary_size"],
                          .dim = table["dim"],
                          .initializer = Initializer::constant(0),
                          .combiner = parse_combiner(table["combiner"].get<std::string>())};
    if (!table["name"].is_null()) config.name = table["name"];
    if (!table["optimizer"].is_null())
      config.optimizer = optimizer_of(table["optimizer"], functions_);
    if (const Json& q = table["quantization"]; !q.is_null())
      config.quantization_config = QuantizationConfig{q[0], q[1], q[2]};
    return make_table(config);
  }

  FeatureConfig feature_of(const Json& value) const {
    FeatureConfig config = feature(tables_.at(value["table"]), value["max_sequence_length"],
                                   shape_of(value["output_shape"]));
    if (!value["name"].is_null()) config.name = value["name"];
    return config;
  }

  Nested<FeatureConfig> features() const {
    std::vector<std::pair<std::string, Nested<FeatureConfig>>> entries;
    std::vector<FeatureConfig> leaves;
    for (const Json& value : config_["features"]) {
      leaves.push_back(feature_of(value));
      entries.emplace_back(value["path"], Nested<FeatureConfig>(leaves.back()));
    }
    if (config_["container"] == "map") return Nested<FeatureConfig>::map(std::move(entries));
    return list(std::move(leaves));
  }

  void build(Embedding& engine) const {
    const Json& build = config_["build"];
    if (build.is_null()) return engine.build();
    if (build.contains("batch")) return engine.build(build["batch"].get<std::int64_t>());
    std::vector<Shape> shapes;
    for (const Json& shape : build["shapes"]) shapes.push_back(shape_of(shape));
    engine.build(Nested<Shape>(engine.feature_config().structure(), std::move(shapes)));
  }

  const Json& config_;
  Functions functions_;
  std::vector<TablePtr> tables_;
};

TEST(Golden, EnginesGiveTheOriginalsBytes) {
  int equal = 0, refused = 0;
  for (const Json& config : wire::golden()["configs"]) {
    if (config.contains("error")) {
      EXPECT_THROW(Described(config).configuration(), ValueError) << config["id"];
      ++refused;
      continue;
    }
    const TPUEmbeddingConfiguration ours = Described(config).configuration();
    EXPECT_EQ(wire::to_hex(wire::serialize(ours)), config["hex"]) << config["id"] << "\n"
                                                                  << wire::to_text(ours);
    EXPECT_EQ(wire::num_dynamic_inputs(ours), static_cast<int>(config["dynamic_rates"].size()));
    ++equal;
  }
  EXPECT_EQ(equal, 48);
  EXPECT_EQ(refused, 10);
}

TablePtr table(std::optional<Optimizer> optimizer, std::string name = "t") {
  return make_table({.vocabulary_size = 8,
                     .dim = 4,
                     .initializer = counting(),
                     .optimizer = std::move(optimizer),
                     .name = std::move(name)});
}

Embedding built(const std::vector<TablePtr>& tables, EmbeddingOptions options = {},
                StrategyPtr strategy = accelerator()) {
  std::vector<FeatureConfig> leaves;
  for (const TablePtr& one : tables) leaves.push_back(feature(one));
  Embedding engine(list(std::move(leaves)), {}, std::move(strategy), std::move(options));
  engine.build(4);
  return engine;
}

TEST(ConfigCases, Case57_WhatAConfigurationSays) {
  FeatureConfig named = feature(video(), 3);
  named.name = "watched";
  StrategyOptions strategy;
  strategy.hosts = 2;
  strategy.cores_per_replica = 2;
  Embedding engine = engine_with(make_strategy(strategy),
                                 Nested<FeatureConfig>::map({{"z", feature(user())}, {"a", named}}),
                                 sgd(0.1), {.pipeline_execution_with_tensor_core = true});
  engine.build(4);
  const TPUEmbeddingConfiguration ours = engine.configuration();
  EXPECT_EQ(ours.mode, TPUEmbeddingConfiguration::Mode::kTraining);
  EXPECT_EQ(ours.num_hosts, 2);
  EXPECT_EQ(ours.num_tensor_cores, 4);
  EXPECT_TRUE(ours.pipeline_execution_with_tensor_core);
  EXPECT_EQ(ours.spmd_sharding, (wire::SpmdSharding{.enabled = true, .num_cores_per_replica = 2}));
  ASSERT_EQ(ours.feature_descriptor.size(), 2u);
  EXPECT_EQ(ours.feature_descriptor[0],
            (wire::FeatureDescriptor{.name = "watched", .table_id = 0, .input_shape = {4, 3}}));
  EXPECT_EQ(ours.feature_descriptor[1],
            (wire::FeatureDescriptor{.name = "", .table_id = 1, .input_shape = {4}}));
}

TEST(ConfigCases, Case28_EqualConfigurationsGiveEqualBytes) {
  const Functions functions = {{"f", LearningRate::dynamic([] { return 0.5; })}};
  const auto bytes = [&] {
    std::vector<TablePtr> tables;
    for (int i = 0; i < 30; ++i) {
      TableConfig config = {.vocabulary_size = 100 + i, .dim = 1 + i * 4};
      config.optimizer = Optimizer("adagrad", i % 2 ? functions.at("f") : LearningRate(0.1));
      tables.push_back(make_table(config));
    }
    return wire::serialize(built(tables).configuration());
  };
  EXPECT_EQ(bytes(), bytes());
}

TEST(ConfigCases, Case29_OneFunctionHasOneTag) {
  const auto rate = [] { return LearningRate::dynamic([] { return 0.5; }); };
  const auto inputs = [](const std::vector<LearningRate>& rates) {
    std::vector<TablePtr> tables;
    for (const LearningRate& one : rates)
      tables.push_back(table(Optimizer("sgd", one), "t" + std::to_string(tables.size())));
    return wire::num_dynamic_inputs(built(tables).configuration());
  };
  const LearningRate f = rate(), g = rate();
  EXPECT_EQ(inputs({f, g, f}), 2);
  EXPECT_EQ(inputs({rate(), rate()}), 2);
  EXPECT_EQ(inputs({0.1, 0.2}), 0);
}

TEST(ConfigCases, Case47_SlotsOfACustomRuleNeedAnInitializerEach) {
  const CustomRule rule = {.slot_names = {"a", "b"},
                           .slot_initializers = {Initializer::constant(0)},
                           .function = CustomRule::Rows([](const CustomRow&) {})};
  EXPECT_THAT(refusal<ValueError>([&] { Optimizer::custom(rule); }),
              AllOf(HasSubstr("2"), HasSubstr("1"), HasSubstr("slot_names")));
}

TEST(ConfigCases, Case56_EveryHostHasARow) {
  TableConfig config = *table(sgd(0.1));
  config.vocabulary_size = 3;
  const Embedding engine = built({make_table(config)}, {}, accelerator(5, 5));
  EXPECT_EQ(engine.configuration().table_descriptor[0].vocabulary_size, 5);
}

TEST(EngineConfiguration, OfTheBatchSizeRevisionCountsFeatures) {
  EmbeddingOptions options;
  options.revision = ApiRevision::kBatchSize;
  const TablePtr users = user();
  Embedding engine =
      engine_with(accelerator(), list({feature(video(), 3), feature(users), feature(users)}),
                  sgd(0.1), options);
  engine.build(16);
  const TPUEmbeddingConfiguration ours = engine.configuration();
  EXPECT_EQ(ours.batch_size_per_tensor_core, 16);
  EXPECT_EQ(ours.table_descriptor[0].num_features, 3);
  EXPECT_EQ(ours.table_descriptor[1].num_features, 2);
  EXPECT_TRUE(ours.feature_descriptor.empty());
  EXPECT_EQ(wire::activation_shapes(ours)[0], (Shape{48, 4}));
}

TEST(EngineConfiguration, ShardingByModuloIsSaid) {
  const Embedding engine = built({table(sgd(0.1))}, {}, accelerator(1, 1, Sharding::kMod));
  EXPECT_EQ(engine.configuration().sharding_strategy,
            TPUEmbeddingConfiguration::ShardingStrategy::kMod);
}

TEST(EngineConfiguration, IsOfABuiltAcceleratedEngine) {
  EXPECT_THROW(engine_with(accelerator()).configuration(), StateError);
  EXPECT_THROW(Embedding(features(), sgd(0.1), nullptr).configuration(), StateError);
}

TEST(EngineConfiguration, ARuleWithoutMessageIsNamedWithItsTable) {
  const Embedding engine = built({table(sgd(0.1), "a"), table(Optimizer("adamw", 0.1), "ads")});
  EXPECT_THAT(refusal<NotImplemented>([&] { engine.configuration(); }),
              AllOf(HasSubstr("'ads'"), HasSubstr("adamw")));
}

/// The tag of a table's step counter.
std::int32_t counter_tag(const TPUEmbeddingConfiguration& configuration, std::size_t table) {
  const auto& parameters = configuration.table_descriptor[table].optimization_parameters.value();
  return std::get<wire::FrequencyAwareAdagradParameters>(parameters.parameters)
      .step_counter.value()
      .tag;
}

TEST(EngineConfiguration, StepCountersWithoutFunctionAreInputsBehindTheOthers) {
  const LearningRate f = LearningRate::dynamic([] { return 0.5; });
  const auto counting_by = [&](std::optional<LearningRate> counter) {
    return Optimizer("frequency_aware_adagrad", 0.1, {}, {.step_counter = std::move(counter)});
  };
  const TPUEmbeddingConfiguration ours =
      built({table(counting_by({}), "a"), table(counting_by(7.0), "b"), table(counting_by(f), "c"),
             table(counting_by({}), "d")})
          .configuration();
  EXPECT_EQ(counter_tag(ours, 2), 0);  // f
  EXPECT_EQ(counter_tag(ours, 0), 1);  // the number of the step
  EXPECT_EQ(counter_tag(ours, 1), 2);  // 7
  EXPECT_EQ(counter_tag(ours, 3), 1);
  EXPECT_EQ(wire::num_dynamic_inputs(ours), 3);
}

TEST(EngineConfiguration, IsLoggedLineByLineWhenBuilt) {
  std::vector<std::string> lines;
  const EmbeddingOptions options = {
      .log_configuration = [&](std::string_view line) { lines.emplace_back(line); }};
  const Embedding engine = built({table(sgd(0.1), "ads")}, options);
  EXPECT_EQ(lines[0], "table_descriptor {");
  EXPECT_EQ(lines[1], "  name: \"ads\"");
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  EXPECT_EQ(text, wire::to_text(engine.configuration()));
  lines.clear();
  built({table(Optimizer("lamb", 0.1), "ads")}, options);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0],
              AllOf(HasSubstr("no configuration"), HasSubstr("'ads'"), HasSubstr("lamb")));
}

TEST(EngineConfiguration, ATableWithACustomCombinerIsRefused) {
  using Computation = CustomCombiner::Computation;
  TableConfig config = *table(sgd(0.1), "ads");
  config.custom_combiner = std::make_shared<const CustomCombiner>(CustomCombiner{
      .combiner_computation = std::make_shared<const Computation>([](auto, auto, auto, auto) {})});
  for (const StrategyPtr& strategy : {accelerator(), StrategyPtr()}) {
    EXPECT_THAT(refusal<NotImplemented>([&] {
                  engine_with(strategy, Nested<FeatureConfig>(feature(make_table(config))));
                }),
                AllOf(HasSubstr("'ads'"), HasSubstr("custom_combiner")));
  }
}

TEST(EngineConfiguration, ADimBeyond32BitsIsRefused) {
  Embedding engine = engine_with(accelerator(), Nested<FeatureConfig>(feature(video())));
  engine.build(Nested<Shape>(Shape{0, std::int64_t{1} << 31, 1}));  // without elements, so no rows
  EXPECT_THAT(refusal<ValueError>([&] { engine.configuration(); }), HasSubstr("2147483648"));
}

}  // namespace
}  // namespace embertable
