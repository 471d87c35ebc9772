// The numbered cases of the class that looks up and steps directly, and of the base class.
#include <gmock/gmock.h>

#include "testing/serving/direct_lookups.h"

namespace embertable {
namespace {

using namespace engine_fixture;  // NOLINT: tables, data and batches of the cases
using ::testing::HasSubstr;

// Slots and creation.

Optimizer adagrad_of_zeros() {
  return Optimizer(
      "adagrad", 0.1, {},
      {.slot_variable_creation_fn = std::make_shared<const SlotInitializer>(
           [](const TableConfig&, std::string_view, bool) { return Initializer::zeros(); })});
}

TEST(EngineCases, Case093_SlotsAreCreatedByTheCallersFunctionInEveryMode) {
  for (const StrategyPtr& strategy : {accelerator(6, 3), StrategyPtr()}) {
    Embedding engine = engine_with(strategy, features(), adagrad_of_zeros());
    engine.build(2);
    EXPECT_EQ(variable(engine, "video/accumulators", 8, 4), F(32, 0));
    EXPECT_EQ(variable(engine, "user/accumulators", 16, 2), F(32, 0));
  }
  DirectEmbedding direct = direct_with(accelerator(2), features(), adagrad_of_zeros());
  EXPECT_EQ(variable(direct, "video/accumulators", 8, 4), F(32, 0));
  EXPECT_EQ(variable(direct, "user/accumulators", 16, 2), F(32, 0));
}

TEST(EngineCases, Case094_DirectTablesTakeSlotsThatAreThereAlready) {
  const Optimizer ready("adagrad", 0.1, {},
                        {.slot_variable_creation_fn = std::make_shared<const SlotInitializer>(
                             [](const TableConfig& table, std::string_view, bool) {
                               return Initializer::values(F(
                                   static_cast<std::size_t>(table.vocabulary_size * table.dim), 7));
                             })});
  DirectEmbedding direct = direct_with(accelerator(), features(), ready);
  EXPECT_EQ(variable(direct, "user/accumulators", 16, 2), F(32, 7));
}

TEST(EngineCases, Case095_WhoseRowsAreTheCallersToTrain) {
  const Optimizer adagrad("adagrad", 0.1);
  const auto expect_trainable = [](const std::vector<TableInfo>& tables, bool trainable) {
    ASSERT_EQ(tables.size(), 2u);
    for (const TableInfo& table : tables) {
      EXPECT_EQ(table.trainable, trainable);
      for (const TableInfo::Slot& slot : table.slots) EXPECT_FALSE(slot.trainable);
    }
  };
  expect_trainable(engine_with(accelerator(), features(), adagrad).tables(), false);
  expect_trainable(engine_with(nullptr, features(), adagrad).tables(), true);
  expect_trainable(ServingEmbedding(features(), adagrad).tables(), true);
  expect_trainable(direct_with(accelerator(), features(), adagrad).tables(), true);
  expect_trainable(EmbeddingBase(features(), adagrad).tables(), true);
}

/// Names and widths of all variables.
std::vector<std::string> variables(const std::vector<TableInfo>& tables) {
  std::vector<std::string> all;
  for (const TableInfo& table : tables) {
    const auto shape = [&](std::int64_t width) {
      return " " + std::to_string(table.vocabulary_size) + "x" + std::to_string(width);
    };
    all.push_back(table.name + shape(table.dim));
    for (const TableInfo::Slot& slot : table.slots)
      all.push_back(table.name + "/" + slot.name + shape(slot.row_wise ? 1 : table.dim));
  }
  return all;
}

TEST(ConfigCases, Case34_AdagradKeepsAccumulatorsOfTheTablesShape) {
  EXPECT_EQ(variables(engine_with(accelerator(), features(), Optimizer("adagrad", 0.1)).tables()),
            (std::vector<std::string>{"video 8x4", "video/accumulators 8x4", "user 16x2",
                                      "user/accumulators 16x2"}));
}

TEST(ConfigCases, Case77_VariablesHaveTheSameNamesInEveryClass) {
  for (const char* rule : {"sgd", "adagrad", "adam", "ftrl"}) {
    const Optimizer optimizer(rule, 0.1);
    const auto names = variables(engine_with(accelerator(), features(), optimizer).tables());
    EXPECT_EQ(variables(engine_with(nullptr, features(), optimizer).tables()), names) << rule;
    EXPECT_EQ(variables(direct_with(accelerator(), features(), optimizer).tables()), names);
    EXPECT_EQ(variables(EmbeddingBase(features(), optimizer).tables()), names);
  }
}

// The base class.

TEST(EngineCases, Case124_NoStrategyAndNothingInTheBase) {
  EXPECT_THAT(refusal<StateError>([] { direct_with(nullptr); }),
              AllOf(HasSubstr("DirectEmbedding"), HasSubstr("strategy")));
  EmbeddingBase base(features());
  EXPECT_FALSE(base.built());
  EXPECT_THAT(refusal<NotImplemented>([&] { base.embedding_tables(); }),
              HasSubstr("embedding_tables"));
  EXPECT_THAT(refusal<NotImplemented>([&] { base.embedding_lookup(AllSamples().sparse()); }),
              HasSubstr("embedding_lookup"));
  EXPECT_THAT(refusal<NotImplemented>([&] { base.build(); }), HasSubstr("build"));
  EXPECT_FALSE(base.built());
}

TEST(EmbeddingBase, ResolvesTablesAsTheEngineDoes) {
  const TablePtr one = make_table({.vocabulary_size = 2, .dim = 1});
  EXPECT_EQ(EmbeddingBase(Nested<FeatureConfig>(feature(one))).tables()[0].name, "table_0");
  EXPECT_THAT(refusal<ValueError>([] {
                EmbeddingBase(Nested<FeatureConfig>::list({feature(video()), feature(video())}));
              }),
              HasSubstr("'video'"));
}

/// The example of the header.
class ExternalRowsEmbedding final : public EmbeddingBase {
 public:
  using EmbeddingBase::EmbeddingBase;
  std::map<TablePtr, TableView> embedding_tables() override { return build(), views_; }
  LookupOutput embedding_lookup(const Batch& inputs) override {
    return serving_embedding_lookup(inputs, embedding_tables(), feature_config());
  }
  int created = 0;

 private:
  void create_variables() override {
    ++created;
    for (const FeatureConfig& of : feature_config().leaves()) {
      const std::size_t size = of.table->vocabulary_size * of.table->dim;
      rows_[of.table].assign(size, 3);
      views_[of.table] = {rows_[of.table].data(), of.table->vocabulary_size, of.table->dim,
                          of.table->dim};
    }
  }
  std::map<TablePtr, F> rows_;
  std::map<TablePtr, TableView> views_;
};

TEST(EmbeddingBase, BuildsADerivedClassOnceAndLooksUpInIt) {
  const Rows ids({{1, 2}, {0}});
  const auto config = one_feature(Combiner::kSum);
  ExternalRowsEmbedding derived(config);
  EmbeddingBase& base = derived;
  EXPECT_EQ(values_of(base(batch_of(ids.ragged()))), (F{6, 6, 3, 3}));
  base.build();
  EXPECT_EQ(derived.created, 1);
  EXPECT_TRUE(base.built());
}

TEST(EmbeddingBase, ServesAndLooksUpDirectlyThroughOneInterface) {
  const Rows ids({{1, 2}, {0}});
  const auto config = one_feature(Combiner::kMean);
  std::vector<std::unique_ptr<EmbeddingBase>> all;
  all.push_back(std::make_unique<ServingEmbedding>(config));
  all.push_back(std::make_unique<DirectEmbedding>(config, std::nullopt, accelerator()));
  for (const auto& embedding : all) {
    EXPECT_FALSE(embedding->built());
    EXPECT_EQ(values_of((*embedding)(batch_of(ids.ragged()))), (F{3, 4, 0, 1}));
    EXPECT_TRUE(embedding->built());
    EXPECT_EQ(embedding->embedding_tables().size(), 1u);
    EXPECT_EQ(embedding->feature_config()[0].table, config[0].table);
  }
}

// Direct lookups.

TEST(EngineCases, Case125_WeightsHalveSumsAndCancelInMeans) {
  const AllSamples all;
  const F six(6, 0.5f), eight(8, 0.5f);
  Batch sparse = all.sparse(), ragged = all.ragged();
  sparse.weights = weights_of(SparseWeights{six}, {}, SparseWeights{eight});
  ragged.weights = weights_of(RaggedWeights{six}, {}, RaggedWeights{eight});
  DirectEmbedding direct = direct_with(accelerator(2));
  for (const LookupOutput& output : direct.embedding_lookup(std::vector<Batch>{sparse, ragged})) {
    EXPECT_EQ(values_of(output, 0), (F{0, .5f, 1, 1.5f, 2, 3, 4, 5, 2, 3, 4, 5, 2, 2.5f, 3, 3.5f}));
    EXPECT_EQ(values_of(output, 1), (F{4, 6, 8, 10, 4, 5, 6, 7, 0, 1, 2, 3, 4, 6, 8, 10}));
    expect_close(values_of(output, 2), {6, 7, 2, 3, 6, 7, 2, 3});
  }
}

TEST(EngineCases, Case126_LooksUpTheFixtureBesideOthersOnTheStrategy) {
  const StrategyPtr strategy = accelerator(2);
  Embedding engine = engine_with(strategy);
  engine.build(2);
  DirectEmbedding first = direct_with(strategy), second = direct_with(strategy);
  const auto data = owned(2);
  for (DirectEmbedding* direct : {&first, &second}) {
    EXPECT_FALSE(direct->built());
    for (const auto& batches : {ragged_batches(data), sparse_batches(data)}) {
      const std::vector<LookupOutput> got = direct->embedding_lookup(batches);
      ASSERT_EQ(got.size(), 2u);
      EXPECT_EQ(values_of(got[0], 0), (F{0, 1, 2, 3, 4, 6, 8, 10}));
      EXPECT_EQ(values_of(got[0], 1), (F{4, 6, 8, 10, 4, 5, 6, 7}));
      EXPECT_EQ(values_of(got[0], 2), (F{6, 7, 2, 3}));
      EXPECT_EQ(values_of(got[1], 0), (F{4, 6, 8, 10, 4, 5, 6, 7}));
      EXPECT_EQ(values_of(got[1], 1), (F{0, 1, 2, 3, 4, 6, 8, 10}));
      EXPECT_EQ(values_of(got[1], 2), (F{6, 7, 2, 3}));
    }
    EXPECT_TRUE(direct->built());
  }
  EXPECT_EQ(values_of(first(AllSamples().sparse()), 2), (F{6, 7, 2, 3, 6, 7, 2, 3}));
}

TEST(EngineCases, Case127_PaddingIsZeroAndTakesNoGradient) {
  const OwnedBatch two(0);
  for (const FeatureIds& ids : {FeatureIds(two.friends.ragged()), FeatureIds(two.friends.sparse())})
    for (const Shape& shape : {Shape(), Shape{2, 3}}) {
      if (shape.has_rank() && std::holds_alternative<SparseIds>(ids)) continue;
      DirectEmbedding direct =
          direct_with(accelerator(), one_feature(Combiner::kMean, 3, shape), sgd(1));
      const Batch batch = batch_of(ids);
      const auto lookups = direct.embedding_lookup(std::span(&batch, 1));
      EXPECT_EQ(values_of(lookups[0]), (F{6, 7, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5}));
      const DirectGradients ones(lookups, filled(1));
      const auto gradients = direct.gradients(lookups, ones.all());
      const GradientSumsOfTable& user = gradients.begin()->second;
      EXPECT_EQ(user.ids, (Ids{0, 1, 2, 3}));
      EXPECT_EQ(user.sums, F(8, 1));
    }
}

TEST(EngineCases, Case128_NothingIsPruned) {
  const Rows both({{0, 1}}), negative({{0, -1}});
  const F weights = {1, -2};
  DirectEmbedding direct = direct_with(accelerator(), one_feature(Combiner::kMean));
  EXPECT_EQ(values_of(direct(batch_of(both.sparse(), SparseWeights{weights}))), (F{4, 5}));
  EXPECT_EQ(refusal<DataError>([&] { direct(batch_of(negative.sparse())); }),
            "feature '', sample 0, position 1: id must be in 0..15 (vocabulary_size 16), got -1");
}

TEST(EngineCases, Case129_GradientOfTheSumOfAllActivations) {
  DirectEmbedding direct = direct_with(accelerator(), features(), sgd(0.1));
  const OwnedBatch data(0);
  const std::vector<Batch> batch = {data.sparse()};
  const auto lookups = direct.embedding_lookup(batch);
  const DirectGradients ones(lookups, filled(1));
  const auto gradients = direct.gradients(lookups, ones.all());
  const auto& config = direct.feature_config();
  EXPECT_EQ(gradients.at(config[0].table).ids, (Ids{0, 1}));
  EXPECT_EQ(gradients.at(config[0].table).sums, F(8, 3));
  EXPECT_EQ(gradients.at(config[2].table).ids, (Ids{0, 1, 2, 3}));
  const double third = 1.0 / 3;
  expect_close(gradients.at(config[2].table).sums,
               {third, third, third, third, third, third, 1, 1});

  direct.apply_gradients(lookups, ones.all());
  EXPECT_EQ(direct.step(), 1);
  const auto after = direct.embedding_lookup(batch);
  expect_close(values_of(after[0], 0), {-0.3, 0.7, 1.7, 2.7, 3.4, 5.4, 7.4, 9.4});
  expect_close(values_of(after[0], 1), {3.4, 5.4, 7.4, 9.4, 3.7, 4.7, 5.7, 6.7});
  expect_close(values_of(after[0], 2), {5.9, 6.9, 1.9666667, 2.9666667});
}

TEST(DirectUpdates, TakeTheGradientOfSeveralLookupsInOneStep) {
  const Optimizer adagrad("adagrad", 0.1, {{"initial_accumulator_value", 1.0}});
  DirectEmbedding direct = direct_with(accelerator(2), one_zero_table(3, 1), adagrad);
  const Ids first = {0, 1}, second = {0, 0}, third = {2}, fourth = {1};
  const std::vector<Batch> queries = {batch_of(DenseIds{first, {}}),
                                      batch_of(DenseIds{second, {}})};
  const std::vector<Batch> items = {batch_of(DenseIds{third, {}}), batch_of(DenseIds{fourth, {}})};
  const auto query = direct.embedding_lookup(queries), item = direct.embedding_lookup(items);
  const F a = {1, 2}, b = {4, 8}, c = {16}, d = {32};
  const std::vector<Nested<Gradient>> of_query = {Gradient{a, {}}, Gradient{b, {}}};
  const std::vector<Nested<Gradient>> of_item = {Gradient{c, {}}, Gradient{d, {}}};
  const std::vector<LookupGradients> parts = {{query, of_query}, {item, of_item}};

  const GradientSumsOfTable sums = direct.gradients(parts).begin()->second;
  EXPECT_EQ(sums.ids, (Ids{0, 1, 2}));
  EXPECT_EQ(sums.sums, (F{1 + 4 + 8, 2 + 32, 16}));
  direct.apply_gradients(parts);
  EXPECT_EQ(direct.step(), 1);
  EXPECT_EQ(variable(direct, direct.tables()[0].name + "/accumulators", 3, 1),
            (F{1 + 13 * 13, 1 + 34 * 34, 1 + 16 * 16}));

  EXPECT_EQ(refusal<ValueError>([&] { direct.gradients(std::span<const LookupGradients>()); }),
            "DirectEmbedding: gradients need a lookup, got none");
  const std::vector<LookupGradients> short_of_one = {parts[0],
                                                     {query, std::span(of_item).first(1)}};
  EXPECT_EQ(refusal<ValueError>([&] { direct.apply_gradients(short_of_one); }),
            "DirectEmbedding: there must be one tree of gradients for each of 2 replicas, got 1");
  EXPECT_EQ(direct.step(), 1);
}

TEST(EngineCases, Case130_AnUnknownCombinerIsRefused) {
  auto forced = std::make_shared<TableConfig>(*user());
  forced->combiner = static_cast<Combiner>(7);
  EXPECT_EQ(refusal<ValueError>(
                [&] { direct_with(accelerator(), Nested<FeatureConfig>(feature(forced))); }),
            "feature '': table 'user': combiner must be mean, sum or sqrtn, got 7");
}

TEST(DirectEmbedding, LooksUpQuantizedTablesOnTheirGridAndTrainsTheRowsAsTheyAre) {
  TableConfig table;
  table.vocabulary_size = 2;
  table.dim = 2;
  table.initializer = Initializer::values({0.1875f, -0.3125f, /**/ 0.6875f, 2});
  table.combiner = Combiner::kSum;
  table.name = "numbers";
  table.quantization_config = QuantizationConfig{.num_buckets = 5, .lower = -1, .upper = 1};
  DirectEmbedding direct = direct_with(
      accelerator(1), Nested<FeatureConfig>(FeatureConfig{.table = make_table(table)}), sgd(0.5));
  const Rows both({{0, 1}, {0}});
  const std::vector<Batch> batches = {batch_of(both.ragged())};
  const auto quarters = [](const Activation& of, std::int64_t, std::int32_t) {
    return F(of.values.size(), 0.25f);
  };
  const std::vector<LookupOutput> lookups = train(direct, batches, quarters);
  EXPECT_EQ(values_of(lookups[0]), (F{0 + 0.5f, -0.5f + 1, /**/ 0, -0.5f}));
  EXPECT_EQ(variable(direct, "numbers", 2, 2), (F{-0.0625f, -0.5625f, /**/ 0.5625f, 1.875f}));
}

TEST(DirectEmbedding, BatchesMayHaveOtherShapesAtEachCall) {
  DirectEmbedding direct = direct_with(accelerator(), one_feature(Combiner::kSum), sgd(1));
  LookupOutput output;
  for (const std::int64_t samples : {3, 1, 7, 0}) {
    const Rows rows(Samples(static_cast<std::size_t>(samples), Ids{2}));
    direct.embedding_lookup(batch_of(rows.ragged()), output);
    EXPECT_EQ(output(0).shape, (Shape{samples, 2}));
    direct.apply_gradients(output, DirectGradients({&output, 1}, filled(1)).all()[0]);
  }
  EXPECT_EQ(direct.step(), 4);
  EXPECT_EQ(variable(direct, "user", 16, 2)[4], 4 - 11);
}

TEST(DirectEmbedding, PartOfTheFeaturesIsPackedLikeTheInputs) {
  DirectEmbedding direct = direct_with(accelerator(), features(), sgd(1));
  const Rows one(Samples{{5}});
  const Batch part = {Nested<FeatureIds>::map({{"2", FeatureIds(one.ragged())}}), {}};
  const LookupOutput output = direct.embedding_lookup(part);
  EXPECT_EQ(output.structure().to_string(), "{2: *}");
  direct.apply_gradients(output, DirectGradients({&output, 1}, filled(1)).all()[0]);
  EXPECT_EQ(variable(direct, "user", 16, 2)[10], 9);
  EXPECT_EQ(variable(direct, "video", 8, 4)[0], 0);
}

TEST(DirectEmbedding, IdsOfTheCallersMayGoBeforeTheirGradientsCome) {
  DirectEmbedding direct = direct_with(accelerator(), one_feature(Combiner::kSum), sgd(1));
  LookupOutput output;
  {
    Ids ids = {3, 4};
    direct.embedding_lookup(batch_of(DenseIds{ids, {}}), output);
    ids.assign({99, 99});
  }
  direct.apply_gradients(output, DirectGradients({&output, 1}, filled(1)).all()[0]);
  EXPECT_EQ(variable(direct, "user", 16, 2)[6], 5);
  EXPECT_EQ(variable(direct, "user", 16, 2)[8], 7);
}

// Updates of the caller's.

TEST(DirectUpdates, GiveRowsSumsAndSlotsTableByTable) {
  const Optimizer slots =
      slots_only({"seen"}, [](const TableConfig&, std::string_view slot, bool row_wise) {
        EXPECT_EQ(slot, "seen");
        EXPECT_FALSE(row_wise);
        return Initializer::constant(5);
      });
  DirectEmbedding direct = direct_with(accelerator(2), features(), slots);
  const auto data = owned(2);
  const auto lookups = direct.embedding_lookup(ragged_batches(data));
  std::vector<std::string> asked;
  direct.apply_gradients(
      lookups, DirectGradients(lookups, filled(1)).all(), [&](const DirectUpdate& table) {
        asked.emplace_back(table.table);
        EXPECT_EQ(table.step, 1);
        const TableView& rows = table.parameters;
        const TableView& seen = table.slots.at("seen");
        for (std::size_t i = 0; i < table.rows.size(); ++i)
          for (std::int32_t c = 0; c < rows.dim; ++c) {
            const float g = table.gradients[i * rows.dim + static_cast<std::size_t>(c)];
            rows.data[table.rows[i] * rows.row_stride + c] -= g;
            seen.data[table.rows[i] * seen.row_stride + c] += 1;
          }
      });
  EXPECT_EQ(asked, (std::vector<std::string>{"video", "user"}));
  EXPECT_EQ(direct.step(), 1);
  const F video = variable(direct, "video", 8, 4), seen = variable(direct, "video/seen", 8, 4);
  EXPECT_EQ(F(video.begin(), video.begin() + 4), (F{-6, -5, -4, -3}));  // six entries of row 0
  EXPECT_EQ(F(seen.begin(), seen.begin() + 12), (F{6, 6, 6, 6, 6, 6, 6, 6, 5, 5, 5, 5}));
}

TEST(DirectUpdates, NeedNoOptimizer) {
  DirectEmbedding direct = direct_with(accelerator(), one_feature(Combiner::kSum), std::nullopt);
  const Rows rows(Samples{{1, 1}, {4}});
  const Batch batch = batch_of(rows.sparse());
  const auto lookups = direct.embedding_lookup(std::span(&batch, 1));
  const DirectGradients ones(lookups, filled(1));
  EXPECT_THAT(refusal<StateError>([&] { direct.apply_gradients(lookups, ones.all()); }),
              HasSubstr("table 'user' has no optimizer"));
  direct.apply_gradients(lookups, ones.all(), [&](const DirectUpdate& table) {
    EXPECT_EQ(Ids(table.rows.begin(), table.rows.end()), (Ids{1, 4}));
    EXPECT_EQ(F(table.gradients.begin(), table.gradients.end()), (F{2, 2, 1, 1}));
    EXPECT_TRUE(table.slots.empty());
  });
}

}  // namespace
}  // namespace embertable
