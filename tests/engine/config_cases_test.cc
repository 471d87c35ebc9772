// Numbered cases of configuration and optimizers that take an engine to show: assembly, shapes, and
// what a step does to rows. Others of them stand among the engine's cases, as `Config<number>`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "embertable/tensorflow/tpu_embedding_configuration.h"
#include "optimizer/rule.h"
#include "testing/engine/batches.h"

namespace embertable {
namespace {

using namespace engine_fixture;  // NOLINT: the vocabulary of these tests
using testing::HasSubstr;

TablePtr small_table(std::optional<std::string> name = {}, std::optional<Optimizer> optimizer = {},
                     Initializer initializer = counting()) {
  return make_table({.vocabulary_size = 8,
                     .dim = 2,
                     .initializer = std::move(initializer),
                     .optimizer = std::move(optimizer),
                     .combiner = Combiner::kSum,
                     .name = std::move(name)});
}

TEST(ConfigCases, Case20_TablesAreNumberedByFirstOccurrence) {
  const TablePtr a = small_table("a"), b = small_table("b");
  Embedding engine =
      engine_with(accelerator(), Nested<FeatureConfig>::list({feature(a), feature(b), feature(a)}));
  engine.build(4);
  const wire::TPUEmbeddingConfiguration configuration = engine.configuration();
  ASSERT_EQ(configuration.table_descriptor.size(), 2u);
  EXPECT_EQ(configuration.table_descriptor[0].name, "a");
  EXPECT_EQ(configuration.table_descriptor[1].name, "b");
  EXPECT_EQ(configuration.feature_descriptor[0].table_id, 0);
  EXPECT_EQ(configuration.feature_descriptor[1].table_id, 1);
  EXPECT_EQ(configuration.feature_descriptor[2].table_id, 0);
}

TEST(ConfigCases, Case24_EqualFieldsAreTwoTables) {
  Embedding engine = engine_with(
      accelerator(), Nested<FeatureConfig>::list({feature(small_table()), feature(small_table())}));
  EXPECT_EQ(engine.tables().size(), 2u);
  const Ids ids = {3};
  const FeatureIds one = DenseIds{ids, {}};
  const Batch batch{Nested<FeatureIds>::list({one, one}), {}};
  train(engine, batch, [](const Activation& a, std::int64_t feature, std::int32_t) {
    return F(a.values.size(), feature == 0 ? 10.0f : 0.0f);
  });
  EXPECT_EQ(row(engine, "table_0", 3, 2), (F{5, 6}));
  EXPECT_EQ(row(engine, "table_1", 3, 2), (F{6, 7}));
}

TEST(ConfigCases, Case25_ATableWithoutOptimizerHasTheEngines) {
  const TablePtr own = small_table("own", sgd(0.2)), none = small_table("none");
  const Embedding engine = engine_with(
      accelerator(), Nested<FeatureConfig>::list({feature(own), feature(none)}), sgd(0.1));
  EXPECT_EQ(engine.tables()[0].optimizer, sgd(0.2).to_string());
  EXPECT_EQ(engine.tables()[1].optimizer, sgd(0.1).to_string());
}

TEST(ConfigCases, Case30_FeaturesOfATableMayShareANameOrHaveNone) {
  const TablePtr table = small_table("t");
  FeatureConfig named = feature(table);
  named.name = "clicks";
  Embedding engine = engine_with(
      accelerator(), Nested<FeatureConfig>::list({named, named, feature(table), feature(table)}));
  engine.build(2);
  std::vector<std::string> names;
  for (const wire::FeatureDescriptor& one : engine.configuration().feature_descriptor)
    names.push_back(one.name);
  EXPECT_EQ(names, (std::vector<std::string>{"clicks", "clicks", "", ""}));
}

/// What `build` makes of one input shape.
Shape built_shape(const Shape& input, std::int64_t length, const Shape& configured = {}) {
  Embedding engine = engine_with(accelerator(), one_feature(Combiner::kSum, length, configured));
  engine.build(Nested<Shape>(input));
  return engine.output_shapes()[0];
}

TEST(ConfigCases, Case35_SequencesFromInputShapes) {
  EXPECT_EQ(built_shape({4, 3}, 2), (Shape{4, 2}));
  EXPECT_EQ(built_shape({4, 1}, 2), (Shape{4}));
  EXPECT_EQ(built_shape({8, 3}, 2, Shape{8}), (Shape{8}));
}

TEST(ConfigCases, Case36_ShapesThatConflictOrStayUnknownAreRefused) {
  const auto text = [](const Shape& input, const Shape& configured) {
    const auto of =
        Nested<FeatureConfig>::map({{"clicks", feature(small_table("t"), 0, configured)}});
    Embedding engine = engine_with(accelerator(), of);
    return refusal<ValueError>([&] {
      engine.build(Nested<Shape>::map({{"clicks", Nested<Shape>(input)}}));
    });
  };
  EXPECT_THAT(text({5, 2}, Shape{4}),
              testing::AllOf(HasSubstr("'clicks'"), HasSubstr("(4)"), HasSubstr("(5)")));
  EXPECT_THAT(text({Shape::kUnknown, 2}, {}), HasSubstr("'clicks'"));
  EXPECT_THAT(text({5, 2}, Shape{Shape::kUnknown}), HasSubstr("'clicks'"));
}

TEST(ConfigCases, Case80_RowGradientsOfTheTwoTableExample) {
  Embedding engine = engine_with(accelerator(), features(), Optimizer("none", 0.1));
  const OwnedBatch data(0);
  train(engine, data.ragged(),
        [](const Activation& a, std::int64_t, std::int32_t) { return loss_gradient(a, 1); });
  const GradientSumsOfTable video = engine.gradient_sums("video"),
                            user = engine.gradient_sums("user");
  EXPECT_EQ(video.ids, (Ids{0, 1}));
  EXPECT_EQ(video.sums, (F{8, 13, 18, 23, 12, 17, 22, 27}));
  EXPECT_EQ(user.ids, (Ids{0, 1, 2, 3}));
  const double third = 2.0 / 3;
  expect_close(user.sums, {third, 1, third, 1, third, 1, 6, 7});
}

TEST(ConfigCases, Case81_EqualReplicasOfADividedLossAreOneReplica) {
  const auto trained = [](std::int32_t replicas, std::int32_t hosts, const Optimizer& optimizer) {
    Embedding engine = engine_with(accelerator(replicas, hosts), features(), optimizer);
    const OwnedBatch data(0);
    const std::vector<Batch> batches(replicas, data.sparse());
    for (int i = 0; i < 3; ++i)
      train(engine, batches, [replicas](const Activation& a, std::int64_t, std::int32_t) {
        return loss_gradient(a, replicas);
      });
    return variable(engine, "video", 8, 4);
  };
  for (const char* rule : {"sgd", "adagrad", "adam", "ftrl", "adagrad_momentum"}) {
    const Optimizer optimizer(rule, 0.1);
    const F one = trained(1, 1, optimizer);
    const std::vector<double> expected(one.begin(), one.end());
    expect_close(trained(2, 1, optimizer), expected, 1e-5);
    expect_close(trained(4, 2, optimizer), expected, 1e-5);
    expect_close(trained(3, 3, optimizer), expected, 1e-5);
  }
}

/// Every variable of a table of 8 rows, by name.
std::vector<std::pair<std::string, F>> variables(const Embedding& engine, const TableInfo& table) {
  std::vector<std::pair<std::string, F>> all = {
      {table.name, variable(engine, table.name, 8, table.dim)}};
  for (const TableInfo::Slot& slot : table.slots) {
    const std::string name = table.name + "/" + slot.name;
    all.emplace_back(name, variable(engine, name, 8, slot.row_wise ? 1 : table.dim));
  }
  return all;
}

/// Two steps of id 1, then one of id 5, on a table of 8 rows.
void expect_lazy(const Optimizer& optimizer, std::int32_t dim) {
  SCOPED_TRACE(optimizer.to_string());
  const TablePtr table = make_table({.vocabulary_size = 8,
                                     .dim = dim,
                                     .initializer = Initializer::uniform(0.25f, 0.75f),
                                     .combiner = Combiner::kSum,
                                     .name = "t"});
  Embedding engine = engine_with(accelerator(), Nested<FeatureConfig>(feature(table)), optimizer);
  const Ids one = {1}, five = {5};
  for (int i = 0; i < 2; ++i) train(engine, batch_of(DenseIds{one, {}}), filled(0.5f));
  const TableInfo info = engine.tables()[0];
  const auto before = variables(engine, info);
  train(engine, batch_of(DenseIds{five, {}}), filled(0.5f));
  const auto after = variables(engine, info);
  for (std::size_t v = 0; v < before.size(); ++v) {
    const std::size_t width = before[v].second.size() / 8;
    for (std::size_t i = 0; i < before[v].second.size(); ++i) {
      if (i / width == 5) continue;
      EXPECT_EQ(after[v].second[i], before[v].second[i]) << before[v].first << " element " << i;
    }
  }
}

TEST(ConfigCases, Case82_UntouchedRowsStayToTheBit) {
  int rules = 0;
  for (const std::string& name : optimizer_rules()) {
    const Optimizer optimizer(name, 0.1);
    if (rule_of(optimizer).steps_every_row(optimizer)) continue;
    expect_lazy(optimizer, name == "frequency_estimator" ? 1 : 2);
    ++rules;
  }
  EXPECT_GE(rules, 19);
}

TEST(ConfigCases, Case82_RulesThatAreNotLazyMoveRowsWithMomenta) {
  for (const Optimizer& optimizer : {Optimizer("adam", 0.1, {{"lazy_adam", false}}),
                                     Optimizer("lion", 0.1, {{"use_non_lazy_lion", true}})}) {
    Embedding engine = engine_with(accelerator(), one_zero_table(4, 1), optimizer);
    const Ids one = {1}, three = {3};
    train(engine, batch_of(DenseIds{one, {}}), filled(1));
    const F before = variable(engine, "t", 4, 1);
    train(engine, batch_of(DenseIds{three, {}}), filled(1));
    const F after = variable(engine, "t", 4, 1);
    EXPECT_LT(after[1], before[1]) << optimizer.to_string();
    EXPECT_EQ(after[0], 0.0f) << optimizer.to_string();
    EXPECT_EQ(after[2], 0.0f) << optimizer.to_string();
  }
}

TEST(ConfigCases, Case84_RowsAreClippedWhenTheyAreTouched) {
  const TablePtr table =
      small_table("t", Optimizer("sgd", 0.1, {}, {.clip_weight_max = 1}), Initializer::constant(5));
  Embedding engine = engine_with(accelerator(), Nested<FeatureConfig>(feature(table)));
  const Ids ids = {2};
  const Activations activations = train(engine, batch_of(DenseIds{ids, {}}), filled(0));
  EXPECT_EQ(values(activations, 0), (F{5, 5}));
  EXPECT_EQ(row(engine, "t", 2, 2), (F{1, 1}));
  EXPECT_EQ(row(engine, "t", 3, 2), (F{5, 5}));
}

TEST(ConfigCases, Case85_TheOrderOfContributionsIsARoundingApart) {
  const auto trained = [](const Samples& samples, const F& gradient) {
    Embedding engine =
        engine_with(accelerator(), one_feature(Combiner::kMean), Optimizer("adagrad", 0.1));
    const Rows rows(samples);
    train(engine, batch_of(rows.ragged()),
          [&](const Activation&, std::int64_t, std::int32_t) { return gradient; });
    return variable(engine, "user", 16, 2);
  };
  const F one =
      trained({{5, 2}, {5}, {5, 5, 7}, {2}}, {0.1f, 0.7f, 0.2f, 0.6f, 0.3f, 0.5f, 0.9f, 0});
  const F other =
      trained({{2}, {7, 5, 5}, {5}, {2, 5}}, {0.9f, 0, 0.3f, 0.5f, 0.2f, 0.6f, 0.1f, 0.7f});
  expect_close(other, {one.begin(), one.end()}, 1e-6);
}

}  // namespace
}  // namespace embertable
