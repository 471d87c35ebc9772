// Engine cases D: what enqueue accepts, and what it says of the rest.
// 43 to 45 by device: cores_test.cc; 42: python/tests/test_arrays.py. The ragged rank 3 of 40
// cannot be expressed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <type_traits>

#include "testing/engine/batches.h"

namespace embertable {
namespace {

using namespace engine_fixture;  // NOLINT: the vocabulary of these tests
using testing::AllOf;
using testing::HasSubstr;

/// What enqueue throws, and whether it left the engine as it was.
template <class Error>
std::string enqueue_refusal(Embedding& engine, const Batch& batch) {
  const bool built = engine.built();
  const std::string text = refusal<Error>([&] { engine.enqueue(batch); });
  EXPECT_NE(text, "") << "enqueue accepted it";
  EXPECT_EQ(engine.built(), built);
  EXPECT_THROW(engine.dequeue(), StateError);
  return text;
}

/// The DataError of a batch, for its position.
BatchPosition position_of(Embedding& engine, std::span<const Batch> batches) {
  try {
    engine.enqueue(batches);
  } catch (const DataError& error) {
    return error.where();
  }
  ADD_FAILURE() << "enqueue accepted it";
  return {};
}

/// The fixture's forward for one replica.
void expect_case_52(Embedding& engine, const Batch& batch) {
  engine.enqueue(batch);
  const Activations activations = engine.dequeue();
  EXPECT_EQ(values(activations, 0), (F{0, 1, 2, 3, 4, 6, 8, 10}));
  EXPECT_EQ(values(activations, 1), (F{4, 6, 8, 10, 4, 5, 6, 7}));
  EXPECT_EQ(values(activations, 2), (F{6, 7, 2, 3}));
}

TEST(EngineCases, Case034_TheStructureIsThatOfTheFeatures) {
  Embedding engine = engine_with(accelerator());
  const OwnedBatch batch(0);
  const FeatureIds ids = batch.watched.ragged();
  const Batch alone{Nested<FeatureIds>::tuple({ids}), {}};
  EXPECT_THAT(enqueue_refusal<ValueError>(engine, alone), HasSubstr("features"));

  Batch one_weight = batch.ragged();
  one_weight.weights = Nested<FeatureWeights>::tuple({FeatureWeights()});
  EXPECT_THAT(enqueue_refusal<ValueError>(engine, one_weight), HasSubstr("weights"));

  const Batch list{Nested<FeatureIds>::list({ids, ids, ids}), {}};
  EXPECT_THAT(enqueue_refusal<TypeError>(engine, list), HasSubstr("features"));

  const TablePtr videos = video();
  Embedding of_map = engine_with(
      accelerator(), Nested<FeatureConfig>::map({{"a", feature(videos)}, {"b", feature(videos)}}));
  const Batch without_b{Nested<FeatureIds>::map({{"a", ids}}), {}};
  EXPECT_THAT(enqueue_refusal<ValueError>(of_map, without_b), HasSubstr("features"));
  expect_case_52(engine, batch.ragged());
}

TEST(EngineCases, Case035_DenseIdsHaveNoWeights) {
  Embedding engine = engine_with(accelerator());
  const Ids ids = {0, 1};
  const F weights = {1, 1};
  Batch batch = batch_of(DenseIds{ids, {}}, DenseIds{ids, {}}, DenseIds{ids, {}});
  for (const FeatureWeights& of :
       {FeatureWeights(DenseWeights{weights}), FeatureWeights(SparseWeights{weights}),
        FeatureWeights(RaggedWeights{weights})}) {
    batch.weights = weights_of(of, of, of);
    EXPECT_THAT(enqueue_refusal<ValueError>(engine, batch), HasSubstr("'0'"));
  }
}

TEST(EngineCases, Case036_WeightsAreOfTheKindOfTheIds) {
  Embedding engine = engine_with(accelerator());
  const OwnedBatch owned(0);
  const F weights(4, 1.0f);
  Batch sparse = owned.sparse(), ragged = owned.ragged();
  sparse.weights = weights_of({}, {}, RaggedWeights{weights});
  EXPECT_THAT(enqueue_refusal<ValueError>(engine, sparse),
              AllOf(HasSubstr("'2'"), HasSubstr("sparse"), HasSubstr("ragged")));
  ragged.weights = weights_of({}, {}, SparseWeights{weights});
  EXPECT_THAT(enqueue_refusal<ValueError>(engine, ragged),
              AllOf(HasSubstr("'2'"), HasSubstr("sparse"), HasSubstr("ragged")));
  ragged.weights = weights_of({}, {}, DenseWeights{weights});
  EXPECT_THAT(enqueue_refusal<ValueError>(engine, ragged),
              AllOf(HasSubstr("'2'"), HasSubstr("ragged")));
  expect_case_52(engine, owned.ragged());
}

TEST(EngineCases, Case037_KindsMixWithinOneCall) {
  Embedding engine = engine_with(accelerator());
  const OwnedBatch owned(0);
  const FeatureIds sparse_watched = owned.watched.sparse(), sparse_friends = owned.friends.sparse();
  for (int i = 0; i < 2; ++i) {
    expect_case_52(engine, batch_of(sparse_watched, owned.favorited.ragged(), sparse_friends));
    engine.apply_gradients(
        Nested<Gradient>::tuple({Gradient::none(), Gradient::none(), Gradient::none()}));
  }
}

TEST(EngineCases, Case038_DenseSparseAndRaggedOfHighRank) {
  Embedding engine = engine_with(accelerator());
  engine.build(three({2, 4, 1}, {2, 4, 2}, {2, 4, 3}));
  const Ids watched = {0, 0, 1, 0, 1, 1, 0, 0};
  const StackedRows favorited(Data().favorited, 2, 2);
  const Rows friends(Samples{{3}, {0, 1, 2}, {3}, {0, 1, 2}, {3}, {0, 1, 2}, {3}, {0, 1, 2}});
  engine.enqueue(batch_of(DenseIds{watched, Shape{2, 4, 1}}, favorited.ids(), friends.ragged()),
                 {.training = false});
  const Activations activations = engine.dequeue();
  EXPECT_EQ(activations(0).shape, (Shape{2, 4, 4}));
  EXPECT_EQ(activations(1).shape, (Shape{2, 4, 4}));
  EXPECT_EQ(activations(2).shape, (Shape{2, 4, 2}));
  EXPECT_EQ(values(activations, 2), (F{6, 7, 2, 3, 6, 7, 2, 3, 6, 7, 2, 3, 6, 7, 2, 3}));
}

TEST(EngineCases, Case039_AShapeThatContradictsTheBuiltOne) {
  Embedding engine = engine_with(accelerator());
  engine.build(three({1, 1, 1}, {1, 1, 1}, {1, 1, 1}));
  const StackedBatch stacked;
  EXPECT_THAT(enqueue_refusal<ValueError>(engine, stacked.batch()),
              AllOf(HasSubstr("'0'"), HasSubstr("(1, 1)"), HasSubstr("(2, 4)")));
}

TEST(EngineCases, Case040_RanksThatNoKindHas) {
  Embedding engine = engine_with(accelerator());
  const OwnedBatch owned(0);
  const Ids two = {0, 1}, six(6);
  const FeatureIds good = owned.watched.ragged();
  const auto text = [&](FeatureIds bad) {
    return enqueue_refusal<ValueError>(engine, batch_of(good, std::move(bad), good));
  };
  EXPECT_THAT(text(SparseIds{two, two, Shape{2}}), AllOf(HasSubstr("'1'"), HasSubstr("rank")));
  EXPECT_THAT(text(DenseIds{two, Shape::scalar()}), HasSubstr("'1'"));
  EXPECT_THAT(text(DenseIds{six, Shape{2, 3}}), AllOf(HasSubstr("'1'"), HasSubstr("(2, 3)")));
  expect_case_52(engine, owned.sparse());
}

TEST(EngineCases, Case041_OneDenseIdIsABatchOfOne) {
  Embedding engine = engine_with(accelerator(), one_feature(Combiner::kSum));
  const Ids ids = {5};
  engine.enqueue(batch_of(DenseIds{ids, Shape{1}}), {.training = false});
  EXPECT_EQ(engine.output_shapes()[0], Shape{1});
  const Activations activations = engine.dequeue();
  EXPECT_EQ(activations(0).shape, (Shape{1, 2}));
  EXPECT_EQ(values(activations, 0), (F{10, 11}));
}

// An array of an accelerator's memory cannot be expressed: ids are borrowed as spans of the
// caller's.
TEST(EngineCases, Case042_IdsAreSpansOfTheHostsMemory) {
  using Narrow = std::span<const std::int32_t>;
  using Wide = std::span<const std::int64_t>;
  static_assert(std::is_constructible_v<IntegerSpan, Narrow>);
  static_assert(std::is_constructible_v<IntegerSpan, Wide>);
  static_assert(!std::is_constructible_v<IntegerSpan, const void*, std::size_t>);
  const Ids ids = {3};
  EXPECT_EQ(IntegerSpan(ids).data(), ids.data());
}

TEST(EngineCases, Case044_OneGlobalCallEqualsOnePerReplica) {
  for (const std::int32_t hosts : {1, 2, 4}) {
    Embedding global = engine_with(accelerator(4, hosts)),
              parts = engine_with(accelerator(4, hosts));
    const auto data = owned(4);
    for (int repeat = 0; repeat < 2; ++repeat) {
      global.enqueue(sparse_batches(data), {.training = false});
      for (std::int32_t r = 3; r >= 0; --r)
        parts.replica(r).enqueue(data[r].sparse(), {.training = false});
      const Activations a = global.dequeue(), b = parts.dequeue();
      for (std::int64_t i = 0; i < 3; ++i) {
        for (std::int32_t r = 0; r < 4; ++r) EXPECT_EQ(values(a, i, r), values(b, i, r));
      }
    }
  }
}

TEST(EngineCases, Case046_TheShapesOfEveryReplicaAreChecked) {
  Embedding engine = engine_with(accelerator(2));
  const auto data = owned(2);
  const Rows three_rows(Samples{{0}, {1}, {0, 1}});
  const std::vector<Batch> batches = {
      data[0].ragged(),
      batch_of(data[1].watched.ragged(), three_rows.ragged(), data[1].friends.ragged())};
  EXPECT_THAT(refusal<ValueError>([&] { engine.enqueue(batches); }),
              AllOf(HasSubstr("'1'"), HasSubstr("(2)"), HasSubstr("(3)")));
  EXPECT_FALSE(engine.built());
  engine.enqueue(ragged_batches(data));
  engine.dequeue();
  EXPECT_THROW(engine.enqueue(batches), ValueError);
  EXPECT_THROW(engine.replica(1).enqueue(batches[1]), ValueError);
}

// E-3 and L-20: each replica is checked against the stored shape, in whatever form it fits.
TEST(EngineCases, Case046_ReplicasMayDifferInFormButNotInShape) {
  const Ids ids = {3, 0, 1, 2};
  const Rows rows(Samples{{3}, {0}, {1}, {2}});
  const std::vector<Batch> batches = {batch_of(DenseIds{ids, Shape{2, 2, 1}}),
                                      batch_of(rows.ragged())};
  for (const bool built : {true, false}) {
    Embedding engine = engine_with(accelerator(2), one_feature(Combiner::kSum, 0, {2, 2}));
    if (built) engine.build();
    engine.enqueue(batches, {.training = false});
    const Activations activations = engine.dequeue();
    EXPECT_EQ(values(activations, 0, 0), (F{6, 7, 0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(values(activations, 0, 1), (F{6, 7, 0, 1, 2, 3, 4, 5}));
  }
}

TEST(EngineCases, Case047_WidthsOfTheCallersNumbersNeverShow) {
  const std::vector<std::int32_t> narrow_ids = {3, 0, 1, 2}, narrow_splits = {0, 1, 4},
                                  narrow_indices = {0, 0, 1, 0, 1, 1, 1, 2};
  const Ids wide_ids = {3, 0, 1, 2}, wide_splits = {0, 1, 4},
            wide_indices = {0, 0, 1, 0, 1, 1, 1, 2};
  const F narrow = {0.1f, 0.2f, 0.3f, 0.7f};
  const std::vector<double> wide = {0.1, 0.2, 0.3, 0.7};
  for (const Combiner combiner : {Combiner::kSum, Combiner::kMean, Combiner::kSqrtN}) {
    Embedding engine = engine_with(accelerator(), one_feature(combiner));
    const F expected =
        forward(engine, batch_of(RaggedIds{wide_splits, wide_ids}, RaggedWeights{narrow}));
    EXPECT_EQ(forward(engine, batch_of(RaggedIds{narrow_splits, narrow_ids}, RaggedWeights{wide})),
              expected);
    EXPECT_EQ(forward(engine, batch_of(SparseIds{wide_indices, narrow_ids, Shape{2, 3}},
                                       SparseWeights{wide})),
              expected);
    EXPECT_EQ(forward(engine, batch_of(SparseIds{narrow_indices, wide_ids, Shape{2, 3}},
                                       SparseWeights{narrow})),
              expected);
    EXPECT_EQ(forward(engine, batch_of(DenseIds{std::vector<std::int32_t>{3, 7}, {}})),
              forward(engine, batch_of(DenseIds{Ids{3, 7}, {}})));
  }
}

/// The position of the DataError for a batch whose second feature is `bad`, from an engine that
/// goes on.
BatchPosition refused(FeatureIds bad, FeatureWeights weights = {}) {
  Embedding engine = engine_with(accelerator());
  const OwnedBatch owned(0);
  Batch batch = batch_of(owned.watched.ragged(), std::move(bad), owned.friends.ragged());
  batch.weights = weights_of({}, std::move(weights), {});
  EXPECT_THAT(enqueue_refusal<DataError>(engine, batch), HasSubstr("'1'"));
  engine.build(2);
  const BatchPosition where = position_of(engine, std::span(&batch, 1));
  expect_case_52(engine, owned.ragged());
  return where;
}

TEST(EngineCases, Case048_ContentsThatContradictThemselves) {
  const Ids ids = {0, 1, 1}, splits = {0, 2, 3}, indices = {0, 0, 0, 1, 1, 0};
  const F short_weights = {1, 1}, long_weights(4, 1.0f);
  const Shape shape = {2, 2};
  for (const F& weights : {short_weights, long_weights}) {
    EXPECT_EQ(refused(RaggedIds{splits, ids}, RaggedWeights{weights}).feature, "1");
    EXPECT_EQ(refused(SparseIds{indices, ids, shape}, SparseWeights{weights}).feature, "1");
  }

  const Ids column = {0, 0, 0, 2, 1, 0}, row = {0, 0, 0, 1, 2, 0}, negative = {0, 0, 0, -1, 1, 0};
  EXPECT_EQ(refused(SparseIds{column, ids, shape}).feature, "1");
  EXPECT_EQ(refused(SparseIds{row, ids, shape}).feature, "1");
  EXPECT_EQ(refused(SparseIds{negative, ids, shape}).feature, "1");
  EXPECT_EQ(refused(SparseIds{splits, ids, shape}).feature, "1");  // not [nnz, rank]

  EXPECT_EQ(refused(RaggedIds{Ids{1, 2, 3}, ids}).feature, "1");
  EXPECT_EQ(refused(RaggedIds{Ids{-1, 2, 3}, ids}).feature, "1");
  EXPECT_EQ(refused(RaggedIds{Ids{0, 4, 3}, ids}).feature, "1");
  EXPECT_EQ(refused(RaggedIds{Ids{0, 2, 2}, ids}).feature, "1");
  EXPECT_EQ(refused(RaggedIds{Ids{0, 2, 4}, ids}).feature, "1");
  EXPECT_EQ(refused(RaggedIds{Ids{0, 2, std::numeric_limits<std::int64_t>::max()}, ids}).feature,
            "1");
}

TEST(EngineCases, Case049_AnIdOutsideItsTableIsNamed) {
  for (const std::int64_t bad :
       {std::int64_t{8}, std::int64_t{-1}, std::numeric_limits<std::int64_t>::max(),
        std::numeric_limits<std::int64_t>::min(), std::int64_t{1} << 32}) {
    Embedding engine = engine_with(accelerator(2));
    const auto data = owned(2);
    const Rows favorited(Samples{{0}, {1, bad}});
    const std::string number = std::to_string(bad);
    for (const FeatureIds& ids : {FeatureIds(favorited.ragged()), FeatureIds(favorited.sparse())}) {
      const std::vector<Batch> batches = {
          data[0].ragged(), batch_of(data[1].watched.ragged(), ids, data[1].friends.ragged())};
      EXPECT_THAT(refusal<DataError>([&] { engine.enqueue(batches); }),
                  AllOf(HasSubstr("'1'"), HasSubstr(number), HasSubstr("8")));
      const BatchPosition where = position_of(engine, batches);
      EXPECT_EQ(where.feature, "1");
      EXPECT_EQ(where.replica, 1);
      EXPECT_EQ(where.sample, 1);
      EXPECT_EQ(where.position, 2);
      EXPECT_FALSE(engine.built());
    }
  }
  Embedding dense = engine_with(accelerator());
  const Ids ids = {0, 8};
  const FeatureIds bad = DenseIds{ids, {}}, good = DenseIds{Ids{0, 1}, {}};
  EXPECT_THAT(enqueue_refusal<DataError>(dense, batch_of(bad, good, good)),
              AllOf(HasSubstr("'0'"), HasSubstr("8")));
}

TEST(EngineCases, Case049_DroppedIdsCountAsAbsent) {
  EmbeddingOptions options;
  options.out_of_range = OutOfRange::kDrop;
  Embedding engine = engine_with(accelerator(), features(), sgd(0.1), options);
  const Rows watched(Samples{{0, 8, 1}, {-1}}), favorited(Samples{{}, {1}}),
      friends(Samples{{3, 99}, {16, -7}});
  const F expected_watched = {4, 6, 8, 10, 0, 0, 0, 0}, expected_friends = {6, 7, 0, 0};
  for (const Batch& batch : {batch_of(watched.ragged(), favorited.ragged(), friends.ragged()),
                             batch_of(watched.sparse(), favorited.sparse(), friends.sparse())}) {
    engine.enqueue(batch, {.training = false});
    const Activations activations = engine.dequeue();
    EXPECT_EQ(values(activations, 0), expected_watched);
    EXPECT_EQ(values(activations, 2), expected_friends);
    EXPECT_EQ(engine.last_step().tables[0].dropped_ids, 2);
    EXPECT_EQ(engine.last_step().tables[1].dropped_ids, 3);
  }
}

TEST(EngineCases, Case050_AFailingFirstCallLeavesNoTrace) {
  Embedding engine = engine_with(accelerator());
  const OwnedBatch owned(0);
  Batch batch = owned.ragged();
  batch.weights =
      Nested<FeatureWeights>::list({FeatureWeights(), FeatureWeights(), FeatureWeights()});
  EXPECT_THROW(engine.enqueue(batch), TypeError);
  EXPECT_FALSE(engine.built());
  EXPECT_FALSE(engine.output_shapes()[0].has_rank());
  const Rows four_rows(Samples{{3}, {1}, {2}, {1}});  // another batch size fits as well now
  const FeatureIds ids = four_rows.ragged();
  engine.enqueue(batch_of(ids, ids, ids));
  EXPECT_EQ(engine.output_shapes()[0], Shape{4});
}

TEST(EngineCases, Case051_ASampleWithoutIdsIsZero) {
  Data data;
  data.watched[3].clear();
  for (const bool sparse : {false, true}) {
    Embedding engine = engine_with(accelerator(2));
    const std::vector<OwnedBatch> owned = {OwnedBatch(0, data), OwnedBatch(1, data)};
    engine.enqueue(sparse ? sparse_batches(owned) : ragged_batches(owned), {.training = false});
    const Activations activations = engine.dequeue();
    EXPECT_EQ(values(activations, 0, 1), (F{4, 6, 8, 10, 0, 0, 0, 0}));
    EXPECT_EQ(values(activations, 1, 1), (F{0, 1, 2, 3, 4, 6, 8, 10}));
  }
}

}  // namespace
}  // namespace embertable
