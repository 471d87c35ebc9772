// The numbered cases of the plain lookup and of the serving class.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "testing/serving/lookups.h"

namespace embertable {
namespace {

using namespace engine_fixture;  // NOLINT: tables, data and batches of the cases
using ::testing::HasSubstr;
using Floats = std::vector<float>;

TEST(ServingCase, 13_TwoObjectsOfTheSameConfigurationBothBuild) {
  const Nested<FeatureConfig> same = features();
  ServingEmbedding a(same), b(same);
  a.build();
  b.build();
  EXPECT_TRUE(a.built() && b.built());
  EXPECT_NE(a.embedding_tables().begin()->second.data, b.embedding_tables().begin()->second.data);
}

TEST(ServingCase, 103_AnAcceleratedObjectsTablesAreServed) {
  for (const std::int32_t hosts : {1, 3}) {
    const TemporaryDirectory directory;
    const auto ones =
        Nested<FeatureConfig>(feature(make_table({.vocabulary_size = 5,
                                                  .dim = 4,
                                                  .initializer = Initializer::constant(1),
                                                  .optimizer = {},
                                                  .combiner = Combiner::kSum,
                                                  .name = "t"})));
    Embedding engine = engine_with(accelerator(hosts, hosts), ones);
    engine.build(2);
    engine.save(directory.path());
    ServingEmbedding serving = ServingEmbedding::open(directory.path(), ones);
    const Ids ids = {1, 0};
    EXPECT_EQ(values_of(serving(batch_of(DenseIds{ids, {}}))), Floats(8, 1));
  }
}

TEST(ServingCase, 110_DenseIdsGiveTheirRows) {
  const Ids watched = {0, 0, 1, 0, 1, 1}, favorited = {0, 1, 1, 0, 0, 1},
            friends = {3, 0, 1, 2, 3, 0, 1, 2};
  ServingEmbedding serving(features());
  const LookupOutput output =
      serving(batch_of(DenseIds{watched, {}}, DenseIds{favorited, {}}, DenseIds{friends, {}}));
  EXPECT_EQ(values_of(output, 0), (Floats{0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 6, 7,  //
                                          0, 1, 2, 3, 4, 5, 6, 7, 4, 5, 6, 7}));
  EXPECT_EQ(values_of(output, 2), (Floats{6, 7, 0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(output(1).shape, (Shape{6, 4}));
}

TEST(ServingCase, AConstantObjectLooksUpAndOutputsAreFoundByPath) {
  const AllSamples all;
  const ServingEmbedding serving(features());
  LookupOutput output;
  EXPECT_THROW(static_cast<void>(output("0")), StateError);
  serving.embedding_lookup(all.ragged(), output);
  EXPECT_EQ(values_of(serving.embedding_lookup(all.ragged())), values_of(output));
  const std::string& last = features().path(2);
  EXPECT_EQ(output(last).values.data(), output(2).values.data());
  EXPECT_THROW(static_cast<void>(output("nowhere")), KeyError);
  Floats row(4);
  serving.read_rows(serving.tables()[0].name, IntegerSpan(std::vector<std::int64_t>{1}), row);
  EXPECT_EQ(row, (Floats{4, 5, 6, 7}));
}

TEST(ServingCase, 111_SparseAndRaggedIdsAreCombined) {
  const AllSamples all;
  for (const Batch& batch : {all.sparse(), all.ragged()}) {
    ServingEmbedding serving(features());
    const LookupOutput output = serving(batch);
    EXPECT_EQ(values_of(output, 0), (Floats{0, 1, 2, 3, 4, 6, 8, 10, 4, 6, 8, 10, 4, 5, 6, 7}));
    EXPECT_EQ(values_of(output, 1), (Floats{4, 6, 8, 10, 4, 5, 6, 7, 0, 1, 2, 3, 4, 6, 8, 10}));
    EXPECT_EQ(values_of(output, 2), (Floats{6, 7, 2, 3, 6, 7, 2, 3}));
    EXPECT_EQ(output.structure(), batch.features.structure());
  }
}

TEST(ServingCase, 112_WeightsMultiplyRowsAndDivideMeans) {
  const AllSamples all;
  const std::vector<double> watched = {0, 0, 1, 0, 1, 1}, favorited = {0, 1, 1, 0, 0, 1},
                            friends = {3, 0, 1, 2, 3, 0, 1, 2};
  Batch sparse = all.sparse(), ragged = all.ragged();
  sparse.weights =
      weights_of(SparseWeights{watched}, SparseWeights{favorited}, SparseWeights{friends});
  ragged.weights =
      weights_of(RaggedWeights{watched}, RaggedWeights{favorited}, RaggedWeights{friends});
  for (const Batch& batch : {sparse, ragged}) {
    ServingEmbedding serving(features());
    const LookupOutput output = serving(batch);
    EXPECT_EQ(values_of(output, 0), (Floats{0, 0, 0, 0, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7}));
    EXPECT_EQ(values_of(output, 1), (Floats{4, 5, 6, 7, 4, 5, 6, 7, 0, 0, 0, 0, 4, 5, 6, 7}));
    expect_close(values_of(output, 2), {6, 7, 10.0 / 3, 13.0 / 3, 6, 7, 10.0 / 3, 13.0 / 3});
  }
}

TEST(ServingCase, 113_StructuresAndKindsAreCompared) {
  const AllSamples all;
  const std::vector<float> six(6, 1), eight(8, 1);
  const Ids ids = {0, 1};
  const auto refused = [&](const Batch& batch) {
    return lookup_refusal<ValueError>(features(), batch);
  };

  Batch dense = batch_of(DenseIds{ids, {}}, DenseIds{ids, {}}, DenseIds{ids, {}});
  dense.weights = weights_of({}, DenseWeights{six}, {});
  EXPECT_EQ(refused(dense), "feature '1': dense ids have no weights, got dense weights");

  Batch mixed = all.sparse();
  mixed.weights = weights_of({}, {}, DenseWeights{eight});
  EXPECT_EQ(refused(mixed), "feature '2': weights of sparse ids must be sparse, got dense weights");

  Batch two_weights = all.sparse();
  two_weights.weights =
      Nested<FeatureWeights>::tuple({FeatureWeights(), FeatureWeights(SparseWeights{six})});
  EXPECT_THAT(refused(two_weights), HasSubstr("weights"));

  const FeatureIds leaf = all.watched.sparse();
  EXPECT_EQ(refused({Nested<FeatureIds>::tuple({leaf, leaf, leaf, leaf}), {}}),
            "inputs: paths must be among those of the features, {'0', '1', '2'}, got {'0', '1', "
            "'2', '3'}");
}

TEST(ServingCase, 113_PartOfTheFeaturesIsPackedLikeTheInputs) {
  const AllSamples all;
  ServingEmbedding serving(features());
  const Batch two = {Nested<FeatureIds>::list(
                         {FeatureIds(all.watched.sparse()), FeatureIds(all.favorited.ragged())}),
                     {}};
  const LookupOutput list = serving(two);
  EXPECT_EQ(list.structure().to_string(), "[*, *]");
  EXPECT_EQ(values_of(list, 1), (Floats{4, 6, 8, 10, 4, 5, 6, 7, 0, 1, 2, 3, 4, 6, 8, 10}));
  EXPECT_EQ(list.nested().path(1), "1");

  const Batch last = {Nested<FeatureIds>::map({{"2", FeatureIds(all.friends.ragged())}}), {}};
  EXPECT_EQ(values_of(serving(last)), (Floats{6, 7, 2, 3, 6, 7, 2, 3}));
}

TEST(ServingCase, 114_SequencesAreCutAndPadded) {
  const AllSamples all;
  const auto config = features_with(0, 0, 2);
  for (const Batch& batch : {all.sparse(), all.ragged()}) {
    ServingEmbedding serving(config);
    const LookupOutput output = serving(batch);
    EXPECT_EQ(values_of(output, 2), (Floats{6, 7, 0, 0, 0, 1, 2, 3, 6, 7, 0, 0, 0, 1, 2, 3}));
    EXPECT_EQ(output(2).shape, (Shape{4, 2, 2}));
  }
}

TEST(ServingCase, 115_SequencesTakeNeitherWeightsNorDenseIds) {
  const Rows rows({{1, 2}});
  const std::vector<float> weights = {1, 1};
  const auto config = one_feature(Combiner::kMean, 2);
  EXPECT_EQ(lookup_refusal<ValueError>(config, batch_of(rows.sparse(), SparseWeights{weights})),
            "feature '': a feature with a max_sequence_length takes no weights, got 2");
  EXPECT_EQ(lookup_refusal<ValueError>(config, batch_of(rows.ragged(), RaggedWeights{weights})),
            "feature '': a feature with a max_sequence_length takes no weights, got 2");
  EXPECT_EQ(lookup_refusal<ValueError>(config, batch_of(DenseIds{rows.values(), {}})),
            "feature '': dense ids are no sequence: max_sequence_length must be 0, got 2");
}

TEST(ServingCase, 116_RaggedRowsFillTheConfiguredShape) {
  const Rows friends(Data().friends);
  const auto look_up = [&](Shape shape) {
    ServingEmbedding serving(one_feature(Combiner::kMean, 0, shape));
    return serving(batch_of(friends.ragged()));
  };
  const LookupOutput combined = look_up({2, 2}), sequences = look_up({2, 4});
  EXPECT_EQ(combined(0).shape, (Shape{2, 2, 2}));
  EXPECT_EQ(values_of(combined), (Floats{6, 7, 2, 3, 6, 7, 2, 3}));
  EXPECT_EQ(sequences(0).shape, (Shape{2, 4, 2}));
  EXPECT_EQ(values_of(sequences), (Floats{6, 7, 0, 0, 0, 1, 2, 3, 6, 7, 0, 0, 0, 1, 2, 3}));
  EXPECT_THAT(refusal<ValueError>([&] { look_up({3}); }),
              AllOf(HasSubstr("output_shape (3)"), HasSubstr("got 4 rows")));
  EXPECT_THAT(refusal<ValueError>([&] { look_up({6}); }), HasSubstr("output_shape (6)"));
  EXPECT_THAT(refusal<ValueError>([&] { look_up({Shape::kUnknown}); }), HasSubstr("must be known"));
}

TEST(ServingCase, 117_DenseIdsKeepTheirShape) {
  const Ids ids = {1, 0, 2, 1};
  const auto config = one_feature(Combiner::kMean);
  EXPECT_EQ(looked_up_shape(config, batch_of(DenseIds{ids, {4, 1}})), (Shape{4, 1, 2}));
  EXPECT_EQ(looked_up_shape(config, batch_of(DenseIds{ids, {2, 2}})), (Shape{2, 2, 2}));
  const Ids one = {3};
  EXPECT_EQ(looked_up_shape(config, batch_of(DenseIds{one, Shape::scalar()})), Shape{2});
}

TEST(ServingCase, 118_SafeLookupsPrune) {
  const Rows negative({{0, -1}}), both({{0, 1}}), only({{-1}, {0}});
  const std::vector<float> weights = {1, -2};
  const auto looked = [&](Combiner combiner, const Rows& rows, FeatureWeights w) {
    return looked_up(one_feature(combiner), batch_of(rows.sparse(), w));
  };
  EXPECT_EQ(looked(Combiner::kSum, negative, {}), (Floats{0, 1}));
  EXPECT_EQ(looked(Combiner::kMean, both, SparseWeights{weights}), (Floats{0, 1}));
  EXPECT_EQ(looked(Combiner::kSum, both, SparseWeights{weights}), (Floats{0 - 4, 1 - 6}));
  for (const Combiner combiner : {Combiner::kSum, Combiner::kMean, Combiner::kSqrtN})
    EXPECT_EQ(looked(combiner, only, {}), (Floats{0, 0, 0, 1}));
}

TEST(ServingCase, 118_WeightsThatAreNoNumbersAreNotPositive) {
  const Rows both({{0, 1}});
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  for (const float bad : {nan, -infinity}) {
    const std::vector<float> weights = {1, bad};
    for (const Combiner combiner : {Combiner::kMean, Combiner::kSqrtN})
      EXPECT_EQ(looked_up(one_feature(combiner), batch_of(both.sparse(), SparseWeights{weights})),
                (Floats{0, 1}));
  }
}

TEST(ServingCase, 119_FastLookupsDoNotPrune) {
  const Ids ids = {3, 0, 1}, indices = {2, 0, 0, 0, 0, 1}, sorted = {0, 1, 3},
            in_order = {0, 0, 0, 1, 2, 0};
  const std::vector<float> weights = {2, 1, -1}, sorted_weights = {1, -1, 2};
  const auto config = unvalidated(Combiner::kMean);
  const Floats want = {0, 0, 0, 0, 6, 7, 0, 0};  // row 0's weights sum to 0; rows 1 and 3 are empty
  EXPECT_EQ(looked_up(config, batch_of(SparseIds{indices, ids, {4, 2}}, SparseWeights{weights})),
            want);
  EXPECT_EQ(looked_up(config,
                      batch_of(SparseIds{in_order, sorted, {4, 2}}, SparseWeights{sorted_weights})),
            want);

  const Rows bad({{0, -1}});
  EXPECT_EQ(lookup_refusal<DataError>(config, batch_of(bad.sparse())),
            "feature '', sample 0, position 1: id must be in 0..15 (vocabulary_size 16), got -1");
}

TEST(ServingCase, 120_RankThreeIsSafeWithoutValidation) {
  const StackedRows rows({{0, -1}, {1}, {}, {2}}, 4, 3);
  const auto config = unvalidated(Combiner::kSum);
  EXPECT_EQ(looked_up_shape(config, batch_of(rows.ids())), (Shape{4, 4, 2}));
  const Floats got = looked_up(config, batch_of(rows.ids()));
  EXPECT_EQ(Floats(got.begin(), got.begin() + 8), (Floats{0, 1, 2, 3, 0, 0, 4, 5}));
}

TEST(ServingCase, 121_EmptyRaggedRowsGiveZeros) {
  const Rows rows({{1, 3}, {}, {2}});
  const std::vector<float> weights = {2, 0.5f, 3};
  EXPECT_EQ(looked_up(one_feature(Combiner::kMean), batch_of(rows.ragged())),
            (Floats{4, 5, 0, 0, 4, 5}));
  expect_close(
      looked_up(one_feature(Combiner::kSqrtN), batch_of(rows.ragged(), RaggedWeights{weights})),
      {3.3954988, 4.6081769, 0, 0, 4, 5});
}

TEST(ServingCase, 122_UnknownTablesAndIdsAreRefused) {
  const auto config = one_feature(Combiner::kSum);
  const Rows rows(Samples{{16}});
  EXPECT_EQ(
      refusal<KeyError>([&] { serving_embedding_lookup(batch_of(rows.sparse()), {}, config); }),
      "table 'user': must be among the tables");
  for (const FeatureIds& ids : {FeatureIds(rows.sparse()), FeatureIds(rows.ragged()),
                                FeatureIds(DenseIds{rows.values(), {}})})
    EXPECT_EQ(lookup_refusal<DataError>(config, batch_of(ids)),
              "feature '', sample 0, position 0: id must be in 0..15 (vocabulary_size 16), got 16");
}

TEST(ServingCase, 123_NoStrategyAndOnlyParameters) {
  EXPECT_THAT(refusal<StateError>([&] { ServingEmbedding(features(), sgd(0.1), accelerator(2)); }),
              HasSubstr("have no strategy"));
  ServingEmbedding serving(features());
  EXPECT_EQ(serving.embedding_tables().size(), 2u);
  for (const TableInfo& table : serving.tables()) EXPECT_TRUE(table.slots.empty());
}

TEST(ServingLookup, IsAPureFunctionOfAnEnginesTables) {
  const AllSamples all;
  const auto config = features();
  Embedding plain(config, {}, nullptr);
  const auto tables = plain.embedding_tables();
  ServingEmbedding serving(config);
  LookupOutput output;
  serving_embedding_lookup(all.sparse(), tables, config, output);
  const LookupOutput own = serving(all.sparse());
  for (std::int64_t leaf = 0; leaf < 3; ++leaf)
    EXPECT_EQ(values_of(output, leaf), values_of(own, leaf));
}

TEST(ServingLookup, RefusesATableOfAnotherSize) {
  const auto config = one_feature(Combiner::kSum);
  std::vector<float> rows(30);
  const Ids ids = {1};
  EXPECT_EQ(refusal<ValueError>([&] {
              serving_embedding_lookup(batch_of(DenseIds{ids, {}}),
                                       {{config[0].table, TableView{rows.data(), 15, 2, 2}}},
                                       config);
            }),
            "table 'user': must have 16 rows of 2 elements, got 15 of 2, 2 apart");
}

TEST(ServingLookup, RefusesAViewWithoutMemoryOrWithMemoryOfTwoTypes) {
  const auto config = one_feature(Combiner::kSum);
  std::vector<float> rows(32);
  std::vector<std::uint16_t> halves(32);
  const Ids ids = {1};
  const Batch batch = batch_of(DenseIds{ids, {}});
  const auto refused = [&](float* data, std::uint16_t* bfloat16) {
    const std::map<TablePtr, TableView> tables = {
        {config[0].table, TableView{data, 16, 2, 2, bfloat16}}};
    const std::string text =
        refusal<ValueError>([&] { serving_embedding_lookup(batch, tables, config); });
    EXPECT_EQ(refusal<ValueError>([&] {
                serving_embedding_gradients(batch, Nested<Gradient>(Gradient()), tables, config);
              }),
              text);
    return text;
  };
  EXPECT_EQ(refused(nullptr, nullptr), "table 'user': must have data or bfloat16, got neither");
  EXPECT_EQ(refused(rows.data(), halves.data()),
            "table 'user': must have data or bfloat16, got both");
  EXPECT_EQ(refused(rows.data(), nullptr), "");
  EXPECT_EQ(refused(nullptr, halves.data()), "");
}

TEST(ServingLookup, OutputsThatLiveKeepTheirValues) {
  const auto config = one_feature(Combiner::kSum);
  const Rows one(Samples{{1}}), two(Samples{{2}}), three(Samples{{3}});
  ServingEmbedding serving(config);
  serving.embedding_lookup(batch_of(three.sparse()));
  const LookupOutput first = serving.embedding_lookup(batch_of(one.sparse()));
  const LookupOutput second = serving.embedding_lookup(batch_of(two.sparse()));
  serving.embedding_lookup(batch_of(three.sparse()));
  EXPECT_EQ(values_of(first), (Floats{2, 3}));
  EXPECT_EQ(values_of(second), (Floats{4, 5}));
}

TEST(ServingLookup, AFailedLookupEmptiesItsOutput) {
  const auto config = one_feature(Combiner::kSum);
  const Rows good(Samples{{1}}), bad(Samples{{99}});
  ServingEmbedding serving(config);
  LookupOutput output;
  EXPECT_EQ(output.size(), 0);
  EXPECT_THROW(output.nested(), StateError);
  serving.embedding_lookup(batch_of(good.sparse()), output);
  EXPECT_EQ(output.size(), 1);
  EXPECT_THROW(serving.embedding_lookup(batch_of(bad.sparse()), output), DataError);
  EXPECT_EQ(output.size(), 0);
  EXPECT_THROW(output.nested(), StateError);
  serving.embedding_lookup(batch_of(good.sparse()), output);
  EXPECT_EQ(values_of(output), (Floats{2, 3}));
}

TEST(ServingLookup, NamesWhatIsWrongWithTheArrays) {
  const auto config = one_feature(Combiner::kSum);
  const Ids ids = {1, 2}, falls = {0, 2, 1, 2}, late = {1, 2}, early = {0, 1}, none,
            outside = {0, 0, 3, 0}, short_indices = {0, 0, 1};
  const std::vector<float> one = {1};
  const auto data = [&](const Batch& batch) { return lookup_refusal<DataError>(config, batch); };
  EXPECT_EQ(data(batch_of(RaggedIds{falls, ids})),
            "feature '', sample 1, position 2: row_splits must not fall, got 1 after 2");
  EXPECT_EQ(data(batch_of(RaggedIds{late, ids})),
            "feature '', position 0: row_splits must start at 0, got 1");
  EXPECT_EQ(data(batch_of(RaggedIds{early, ids})),
            "feature '', position 1: row_splits must end at the number of ids, 2, got 1");
  EXPECT_EQ(data(batch_of(RaggedIds{none, ids})),
            "feature '': row_splits must have one number or more, got none");
  EXPECT_EQ(data(batch_of(SparseIds{outside, ids, {3, 1}})),
            "feature '', position 1: indices must lie within dense_shape (3, 1), got 3 on axis 0");
  EXPECT_EQ(data(batch_of(SparseIds{short_indices, ids, {3, 1}})),
            "feature '': indices must be [2, 2], one row per id, got 3 numbers");
  EXPECT_EQ(data(batch_of(RaggedIds{Ids{0, 2}, ids}, RaggedWeights{one})),
            "feature '': weights must be as many as the ids, 2, got 1");
  EXPECT_EQ(lookup_refusal<ValueError>(config, batch_of(DenseIds{ids, {3}})),
            "feature '': dense ids of shape (3) must have a known shape with one element each, got "
            "2 ids");
  EXPECT_THAT(lookup_refusal<ValueError>(
                  config, batch_of(SparseIds{none, none, {std::int64_t{1} << 40, 2}})),
              HasSubstr("at most 2147483647 ids and output rows"));
}

TEST(ServingLookup, WhatASequenceCutsOffIsNotChecked) {
  const auto config = one_feature(Combiner::kMean, 1);
  const Rows rows({{1, 99}});
  EXPECT_EQ(looked_up(config, batch_of(rows.sparse())), (Floats{2, 3}));
  EXPECT_EQ(looked_up(config, batch_of(rows.ragged())), (Floats{2, 3}));
}

TEST(ServingLookup, ANaNRowThatIsNotNamedShowsNowhere) {
  Floats table(32, 1);
  table[0] = table[1] = std::nanf("");
  const auto config =
      Nested<FeatureConfig>(feature(make_table({.vocabulary_size = 16,
                                                .dim = 2,
                                                .initializer = Initializer::values(table),
                                                .optimizer = {},
                                                .combiner = Combiner::kMean,
                                                .name = "t"}),
                                    3));
  const Rows rows({{1}, {}, {2, 3, 4, 5}});
  for (const FeatureIds& ids : {FeatureIds(rows.sparse()), FeatureIds(rows.ragged())})
    for (const float x : looked_up(config, batch_of(ids))) EXPECT_FALSE(std::isnan(x));
}

TEST(ServingLookup, FlushToZeroOfTheCallersThreadDoesNotShow) {
  const float tiny = std::numeric_limits<float>::denorm_min();
  const auto config =
      Nested<FeatureConfig>(feature(make_table({.vocabulary_size = 2,
                                                .dim = 2,
                                                .initializer = Initializer::constant(tiny),
                                                .optimizer = {},
                                                .combiner = Combiner::kSum,
                                                .name = "t"})));
  const Rows rows({{0, 1}});
  ServingEmbedding serving(config);
  serving.build();
  const unsigned int found = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(found | 0x8040);
  const Floats got = values_of(serving(batch_of(rows.sparse())));
  __builtin_ia32_ldmxcsr(found);
  EXPECT_EQ(got, Floats(2, 2 * tiny));
}

}  // namespace
}  // namespace embertable
