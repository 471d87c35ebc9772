// Engine cases E: the values of activations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "testing/engine/batches.h"
#include "testing/refusal.h"

namespace embertable {
namespace {

using namespace engine_fixture;  // NOLINT: the vocabulary of these tests
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// What replica r mod 2 sees of the three features.
const std::vector<std::vector<F>> kCase52 = {
    {{0, 1, 2, 3, 4, 6, 8, 10}, {4, 6, 8, 10, 4, 5, 6, 7}, {6, 7, 2, 3}},
    {{4, 6, 8, 10, 4, 5, 6, 7}, {0, 1, 2, 3, 4, 6, 8, 10}, {6, 7, 2, 3}}};

double loss(const Activations& activations, std::int32_t replica) {
  double sum = 0;
  for (std::int64_t i = 0; i < activations.features(); ++i) {
    const Activation a = activations(i, replica);
    double squares = 0;
    for (const float v : a.values) squares += static_cast<double>(v) * static_cast<double>(v);
    sum += squares / static_cast<double>(a.shape.without_last().num_elements());
  }
  return sum;
}

TEST(EngineCases, Case052_TheFixtureForward) {
  for (const std::int32_t replicas : {1, 2, 4}) {
    for (const bool sparse : {false, true}) {
      for (const Optimizer& optimizer : {sgd(0.1), Optimizer("adagrad", 0.1)}) {
        Embedding engine = engine_with(accelerator(replicas), features(), optimizer);
        const auto data = owned(replicas);
        engine.enqueue(sparse ? sparse_batches(data) : ragged_batches(data));
        const Activations activations = engine.dequeue();
        ASSERT_EQ(activations.replicas(), replicas);
        for (std::int32_t r = 0; r < replicas; ++r) {
          for (std::int64_t i = 0; i < 3; ++i)
            EXPECT_EQ(values(activations, i, r), kCase52[r % 2][i]);
          EXPECT_EQ(loss(activations, r), 335.0);
          EXPECT_EQ(activations(0, r).shape, (Shape{2, 4}));
        }
      }
    }
  }
}

TEST(EngineForward, ActivationsAreFoundByTheirFeaturesPaths) {
  const std::vector<std::pair<std::string, Nested<FeatureConfig>>> two = {
      {"user", Nested<FeatureConfig>(features()[0])},
      {"tags", Nested<FeatureConfig>(features()[2])}};
  Embedding engine = engine_with(accelerator(), Nested<FeatureConfig>::map(two), sgd(1));
  const Ids user = {1, 0}, tags = {3, 2};
  engine.enqueue(Batch{Nested<FeatureIds>::map(
      {{"user", FeatureIds(DenseIds{user, {}})}, {"tags", FeatureIds(DenseIds{tags, {}})}})});
  const Activations activations = engine.dequeue();
  EXPECT_EQ(activations("user").values.data(), activations(1).values.data());
  EXPECT_EQ(activations("tags").shape, activations(0).shape);
  EXPECT_NE(activations("tags").shape, activations(1).shape);
  EXPECT_EQ(refusal<KeyError>([&] { static_cast<void>(activations("usr")); }),
            "no leaf is at the path 'usr'; the nearest is 'user'");
}

TEST(EngineForward, RaggedArraysThatAreSwappedAreToldSo) {
  Embedding engine = engine_with(accelerator(), one_zero_table(4, 2), sgd(1));
  const Ids ids = {1, 3, 2}, splits = {0, 1, 3};
  const auto enqueue = [&](const RaggedIds& given) { engine.enqueue(batch_of(given)); };
  const std::string message =
      "row_splits and values seem to be swapped: values go from 0 to 3, the "
      "number of row_splits";
  EXPECT_THAT(refusal<ValueError>([&] { enqueue(RaggedIds::from_row_splits(splits, ids)); }),
              HasSubstr(message));  // before the engine is built
  enqueue(RaggedIds::from_row_splits(ids, splits));
  engine.dequeue();
  EXPECT_THAT(refusal<ValueError>([&] { enqueue({.row_splits = ids, .values = splits}); }),
              HasSubstr(message));
}

TEST(EngineForward, AShorterBatchNamesTheOptionThatAllowsIt) {
  Embedding engine = engine_with(accelerator(), one_zero_table(4, 2), sgd(1));
  engine.build(3);
  const Ids two = {1, 3}, four = {0, 1, 2, 3};
  EXPECT_THAT(refusal<ValueError>([&] {
                engine.enqueue(batch_of(DenseIds{two, {}}));
              }),
              HasSubstr("variable_batch allows fewer samples"));
  EXPECT_THAT(refusal<ValueError>([&] {
                engine.enqueue(batch_of(DenseIds{four, {}}));
              }),
              AllOf(HasSubstr("a batch has at most the samples of the first one, or of build"),
                    Not(HasSubstr("variable_batch"))));
}

TEST(EngineCases, Case053_SparseOfRankThree) {
  std::vector<F> expected;
  for (std::size_t i = 0; i < 3; ++i) {
    F all = kCase52[0][i];
    all.insert(all.end(), kCase52[1][i].begin(), kCase52[1][i].end());
    const F once = all;
    all.insert(all.end(), once.begin(), once.end());
    expected.push_back(all);
  }
  for (const Shape& friends : {Shape{2, 4, 3}, Shape{2, 4, -1}}) {
    Embedding engine = engine_with(accelerator(2));
    engine.build(three({2, 4, 2}, {2, 4, 2}, friends));
    const StackedBatch stacked;
    engine.enqueue(std::vector<Batch>{stacked.batch(), stacked.batch()});
    const Activations activations = engine.dequeue();
    for (std::int32_t r = 0; r < 2; ++r) {
      EXPECT_EQ(activations(2, r).shape, (Shape{2, 4, 2}));
      for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(values(activations, i, r), expected[i]);
      EXPECT_EQ(loss(activations, r), 335.0);
    }
  }
}

F video_rows(const Ids& ids) {
  F rows;
  for (const std::int64_t id : ids) {
    for (int c = 0; c < 4; ++c) rows.push_back(static_cast<float>(4 * id + c));
  }
  return rows;
}
F user_rows(const Ids& ids) {
  F rows;
  for (const std::int64_t id : ids) {
    for (int c = 0; c < 2; ++c) rows.push_back(static_cast<float>(2 * id + c));
  }
  return rows;
}

TEST(EngineCases, Case054_DenseIdsGather) {
  for (const Shape& shape : {Shape{}, Shape{2}, Shape{2, 1}}) {
    Embedding engine = engine_with(accelerator(2));
    const Ids w0 = {0, 0}, w1 = {1, 0}, f0 = {0, 1}, f1 = {1, 0}, u0 = {3, 0}, u1 = {1, 2};
    engine.enqueue(std::vector<Batch>{
        batch_of(DenseIds{w0, shape}, DenseIds{f0, shape}, DenseIds{u0, shape}),
        batch_of(DenseIds{w1, shape}, DenseIds{f1, shape}, DenseIds{u1, shape})});
    const Activations activations = engine.dequeue();
    EXPECT_EQ(values(activations, 0, 0), video_rows(w0));
    EXPECT_EQ(values(activations, 0, 1), video_rows(w1));
    EXPECT_EQ(values(activations, 1, 0), video_rows(f0));
    EXPECT_EQ(values(activations, 1, 1), video_rows(f1));
    EXPECT_EQ(values(activations, 2, 0), user_rows(u0));
    EXPECT_EQ(values(activations, 2, 1), user_rows(u1));
    EXPECT_EQ(activations(2, 1).shape, (Shape{2, 2}));
  }
}

TEST(EngineCases, Case055_DenseIdsOfHighRank) {
  Embedding engine = engine_with(accelerator());
  const Ids watched = {0, 0, 1, 0, 1, 1, 0, 0, 1, 0, 1, 1, 0, 0, 1, 0},
            favorited = {0, 1, 1, 0, 0, 1, 0, 1, 1, 0, 0, 1, 0, 1, 1, 0},
            friends = {3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2};
  const Shape shape = {4, 4, 1};
  engine.enqueue(
      batch_of(DenseIds{watched, shape}, DenseIds{favorited, shape}, DenseIds{friends, shape}));
  const Activations activations = engine.dequeue();
  EXPECT_EQ(activations(0).shape, (Shape{4, 4, 4}));
  EXPECT_EQ(values(activations, 0), video_rows(watched));
  EXPECT_EQ(values(activations, 1), video_rows(favorited));
  EXPECT_EQ(values(activations, 2), user_rows(friends));
}

TEST(EngineCases, Case056_WeightsOfOneHalf) {
  for (const bool sparse : {false, true}) {
    Embedding engine = engine_with(accelerator());
    const OwnedBatch data(0);
    const F three_halves(3, 0.5f), four_halves(4, 0.5f);
    Batch batch = sparse ? data.sparse() : data.ragged();
    batch.weights = sparse
                        ? weights_of(SparseWeights{three_halves}, {}, SparseWeights{four_halves})
                        : weights_of(RaggedWeights{three_halves}, {}, RaggedWeights{four_halves});
    engine.enqueue(batch);
    const Activations activations = engine.dequeue();
    EXPECT_EQ(values(activations, 0), (F{0, 0.5f, 1, 1.5f, 2, 3, 4, 5}));
    EXPECT_EQ(values(activations, 1), kCase52[0][1]);
    expect_close(values(activations, 2), {6, 7, 2, 3});
  }
}

/// Ragged rows of one feature on a table like `user`.
F combined(Combiner combiner, const Samples& samples, const F& weights = {}) {
  Embedding engine = engine_with(accelerator(), one_feature(combiner));
  const Rows rows(samples);
  const F ragged = forward(
      engine, batch_of(rows.ragged(), weights.empty() ? FeatureWeights() : RaggedWeights{weights}));
  EXPECT_EQ(forward(engine, batch_of(rows.sparse(),
                                     weights.empty() ? FeatureWeights() : SparseWeights{weights})),
            ragged);
  return ragged;
}

TEST(EngineCases, Case057_WeightedCombiners) {
  const Samples samples = {{1, 3}, {2}};
  const F weights = {2, 0.5f, 3};
  expect_close(combined(Combiner::kSum, samples, weights), {7, 9.5, 12, 15});
  expect_close(combined(Combiner::kMean, samples, weights), {2.8, 3.8, 4, 5});
  expect_close(combined(Combiner::kSqrtN, samples, weights), {3.3954988, 4.6081769, 4, 5});
}

TEST(EngineCases, Case058_RepeatedIdsAreSeparateEntries) {
  const Samples samples = {{5, 5, 2}};
  expect_close(combined(Combiner::kSum, samples), {24, 27});
  expect_close(combined(Combiner::kMean, samples), {8, 9});
  expect_close(combined(Combiner::kSqrtN, samples), {13.8564065, 15.5884573});
}

TEST(EngineCases, Case059_ADenominatorOfZeroGivesZeros) {
  const F zeros = {0, 0};
  EXPECT_EQ(combined(Combiner::kMean, {{0, 1}}, {1, -1}), zeros);
  EXPECT_EQ(combined(Combiner::kSum, {{0, 1}}, {1, -1}), (F{-2, -2}));
  EXPECT_EQ(combined(Combiner::kSqrtN, {{0, 1}}, {0, 0}), zeros);
  EXPECT_EQ(combined(Combiner::kMean, {{0, 1}}, {0, 0}), zeros);
  EXPECT_EQ(combined(Combiner::kSum, {{0, 1}}, {0, 0}), zeros);
}

TEST(EngineCases, Case060_ANanOfAnUnusedRowNeverShows) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Combiner combiner : {Combiner::kSum, Combiner::kMean, Combiner::kSqrtN}) {
    for (const std::int64_t length : {0, 3}) {
      for (const std::int32_t hosts : {1, 2}) {
        Embedding engine = engine_with(accelerator(2, hosts), one_feature(combiner, length));
        engine.build(4);
        engine.assign_rows("user", Ids{0}, F{nan, nan});
        const Rows rows(Samples{{}, {2}, {1, 3}, {}});
        const F weights = {1, 0, 0};
        for (const Batch& batch : {batch_of(rows.ragged()), batch_of(rows.sparse()),
                                   batch_of(rows.ragged(), RaggedWeights{weights})}) {
          for (const float v : forward(engine, batch)) EXPECT_EQ(v, v);
        }
      }
    }
  }
}

TEST(EngineCases, Case061_Sequences) {
  for (const bool sparse : {false, true}) {
    Embedding engine = engine_with(accelerator(), features_with(2, 2, 3));
    const OwnedBatch data(0);
    engine.enqueue(sparse ? data.sparse() : data.ragged());
    const Activations activations = engine.dequeue();
    EXPECT_EQ(activations(0).shape, (Shape{2, 2, 4}));
    EXPECT_EQ(activations(2).shape, (Shape{2, 3, 2}));
    EXPECT_EQ(values(activations, 0), (F{0, 1, 2, 3, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7}));
    EXPECT_EQ(values(activations, 1), (F{0, 1, 2, 3, 4, 5, 6, 7, 4, 5, 6, 7, 0, 0, 0, 0}));
    EXPECT_EQ(values(activations, 2), (F{6, 7, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5}));
  }
}

TEST(EngineCases, Case062_SequencesAreCutAndKeepTheirColumns) {
  Embedding engine = engine_with(accelerator(), one_feature(Combiner::kMean, 2));
  const Rows friends(Samples{{3}, {0, 1, 2}});
  const F cut = {6, 7, 0, 0, 0, 1, 2, 3};
  EXPECT_EQ(forward(engine, batch_of(friends.ragged())), cut);
  EXPECT_EQ(engine.last_step().tables[0].truncated_entries, 1);
  EXPECT_EQ(forward(engine, batch_of(friends.sparse())), cut);
  const Ids ids = {3, 0, 1, 2}, second = {0, 1, 1, 0, 1, 1, 1, 2}, third = {0, 2, 1, 0, 1, 1, 1, 2};
  EXPECT_EQ(forward(engine, batch_of(SparseIds{second, ids, Shape{2, 3}})),
            (F{0, 0, 6, 7, 0, 1, 2, 3}));
  EXPECT_EQ(forward(engine, batch_of(SparseIds{third, ids, Shape{2, 3}})),
            (F{0, 0, 0, 0, 0, 1, 2, 3}));
}

TEST(EngineCases, Case063_ASequenceOfOneIsNoMean) {
  Embedding engine = engine_with(accelerator(), one_feature(Combiner::kMean, 1));
  const Rows rows(Samples{{1, 2}});
  engine.enqueue(batch_of(rows.ragged()), {.training = false});
  const Activations activations = engine.dequeue();
  EXPECT_EQ(activations(0).shape, (Shape{1, 1, 2}));
  EXPECT_EQ(values(activations, 0), (F{2, 3}));
}

TEST(EngineCases, Case064_RaggedRowsAgainstTheBuiltShape) {
  const Rows rows(Samples{{3}, {0, 1, 2}});
  const Batch batch = batch_of(rows.ragged());
  Embedding sequences = engine_with(accelerator(), one_feature(Combiner::kMean, 0, {2, 4}));
  EXPECT_EQ(forward(sequences, batch), (F{6, 7, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 0, 0}));
  const F halves(4, 0.5f);  // ignored, as the combiner is
  EXPECT_EQ(forward(sequences, batch_of(rows.ragged(), RaggedWeights{halves})),
            (F{6, 7, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 0, 0}));
  Embedding means = engine_with(accelerator(), one_feature(Combiner::kMean, 0, Shape{2}));
  EXPECT_EQ(forward(means, batch), (F{6, 7, 2, 3}));
  for (const Shape& shape : {Shape{3}, Shape{5}, Shape{3, 1}, Shape{1, 5}}) {
    Embedding engine = engine_with(accelerator(), one_feature(Combiner::kMean, 0, shape));
    const std::string text = refusal<ValueError>([&] { engine.enqueue(batch); });
    EXPECT_THAT(text, AllOf(HasSubstr(shape.to_string()), HasSubstr("2")));
    EXPECT_FALSE(engine.built());
  }
}

TEST(EngineCases, Case064_RaggedRowsCombineIntoAHighRank) {
  const Rows rows(Samples{{3}, {0, 1, 2}, {}, {5, 5}});
  Embedding engine = engine_with(accelerator(), one_feature(Combiner::kMean, 7, {2, 2}));
  engine.enqueue(batch_of(rows.ragged()), {.training = false});
  const Activations activations = engine.dequeue();
  EXPECT_EQ(activations(0).shape, (Shape{2, 2, 2}));
  EXPECT_EQ(values(activations, 0), (F{6, 7, 2, 3, 0, 0, 10, 11}));
}

TEST(EngineCases, Case065_WeightsOfSequences) {
  const Rows rows(Samples{{3}, {0, 1, 2}});
  const F halves(4, 0.5f), signs = {-2, 0, 3, -0.25f};
  const auto sequence = [&](Combiner combiner, const F& weights) {
    Embedding engine = engine_with(accelerator(), one_feature(combiner, 3));
    const F ragged = forward(engine, batch_of(rows.ragged(), RaggedWeights{weights}));
    EXPECT_EQ(forward(engine, batch_of(rows.sparse(), SparseWeights{weights})), ragged);
    return ragged;
  };
  EXPECT_EQ(sequence(Combiner::kSum, halves), (F{3, 3.5f, 0, 0, 0, 0, 0, 0.5f, 1, 1.5f, 2, 2.5f}));
  EXPECT_EQ(sequence(Combiner::kMean, halves), (F{6, 7, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(sequence(Combiner::kSum, signs), (F{-12, -14, 0, 0, 0, 0, 0, 0, 6, 9, -1, -1.25f}));
  EXPECT_EQ(sequence(Combiner::kMean, signs), (F{6, 7, 0, 0, 0, 0, 0, 0, 2, 3, 4, 5}));
  EXPECT_EQ(sequence(Combiner::kSqrtN, signs), (F{-6, -7, 0, 0, 0, 0, 0, 0, 2, 3, -4, -5}));
}

TEST(EngineCases, Case066_HostsNeverShow) {
  for (const auto& [replicas, hosts] : std::vector<std::pair<std::int32_t, std::int32_t>>{
           {30, 1}, {30, 2}, {30, 3}, {30, 5}, {16, 1}, {16, 2}, {16, 16}}) {
    for (const Sharding sharding : {Sharding::kDiv, Sharding::kMod}) {
      SCOPED_TRACE(std::to_string(hosts) + " hosts");
      Embedding engine = engine_with(accelerator(replicas, hosts, sharding));
      const auto data = owned(replicas);
      engine.enqueue(ragged_batches(data));
      const Activations activations = engine.dequeue();
      for (std::int32_t r = 0; r < replicas; ++r) {
        for (std::int64_t i = 0; i < 3; ++i)
          EXPECT_EQ(values(activations, i, r), kCase52[r % 2][i]);
      }
    }
  }
}

}  // namespace
}  // namespace embertable
