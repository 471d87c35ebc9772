// The engine cases of the batch-size revision.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "embertable/tensorflow/tpu_embedding_configuration.h"
#include "testing/engine/batches.h"

namespace embertable {
namespace {

using namespace engine_fixture;  // NOLINT: the vocabulary of these tests
using testing::AllOf;
using testing::HasSubstr;

EmbeddingOptions by_batch_size() {
  EmbeddingOptions options;
  options.revision = ApiRevision::kBatchSize;
  return options;
}

Embedding engine_by_batch_size(std::int32_t replicas = 1, Nested<FeatureConfig> of = features(),
                               EmbeddingOptions options = by_batch_size()) {
  return engine_with(accelerator(replicas), std::move(of), sgd(0.1), std::move(options));
}

/// Samples 0 .. samples - 1 of the cases in every feature.
struct Samples4 {
  Rows watched, favorited, friends;
  explicit Samples4(std::size_t samples)
      : watched(first(Data().watched, samples)),
        favorited(first(Data().favorited, samples)),
        friends(first(Data().friends, samples)) {}
  static Samples first(const Samples& all, std::size_t samples) {
    return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(samples)};
  }
  Batch sparse() const { return batch_of(watched.sparse(), favorited.sparse(), friends.sparse()); }
  Batch ragged() const { return batch_of(watched.ragged(), favorited.ragged(), friends.ragged()); }
};

FeatureIds without_leading_dim(SparseIds ids) {
  ids.dense_shape = ids.dense_shape.with_leading(Shape::kUnknown);
  return ids;
}

TEST(EngineCases, Case027_BuildTakesABatchSize) {
  Embedding engine = engine_by_batch_size();
  EXPECT_THAT(refusal<ValueError>([&] { engine.build(); }), HasSubstr("per_replica_batch_size"));
  EXPECT_THAT(refusal<ValueError>([&] {
                engine.build(three({2, 2}, {2, 2}, {2, 3}));
              }),
              HasSubstr("per_replica_input_shapes"));
  EXPECT_FALSE(engine.built());
  engine.build(2);
  engine.build();  // built: returns at once
  EXPECT_EQ(engine.output_shapes()[2], Shape{2});

  Embedding plain = engine_with(nullptr, features(), sgd(0.1), by_batch_size());
  plain.build();
  EXPECT_TRUE(plain.built());
}

TEST(EngineCases, Case027_AllFeaturesHaveOneBatchSize) {
  Embedding engine = engine_by_batch_size();
  const Samples4 two(2), three(3);
  EXPECT_THAT(refusal<ValueError>([&] {
                engine.enqueue(
                    batch_of(two.watched.sparse(), three.favorited.sparse(), two.friends.sparse()));
              }),
              AllOf(HasSubstr("got 2 of feature '0' of replica 0"),
                    HasSubstr("3 of feature '1' of replica 0")));
  EXPECT_FALSE(engine.built());
  engine.enqueue(two.sparse());
  EXPECT_TRUE(engine.built());
  EXPECT_THAT(refusal<ValueError>([&] { engine.enqueue(three.sparse()); }),
              AllOf(HasSubstr("is 2"), HasSubstr("got 3")));
  EXPECT_THAT(refusal<ValueError>([&] { engine.look_up(three.sparse()); }), HasSubstr("got 3"));
  EXPECT_EQ(values(engine.dequeue(), 0), (F{0, 1, 2, 3, 4, 6, 8, 10}));
}

TEST(EngineCases, Case027_AllReplicasHaveOneBatchSize) {
  Embedding engine = engine_by_batch_size(2);
  const Samples4 two(2), three(3);
  const std::vector<Batch> differ = {two.ragged(), three.ragged()};
  EXPECT_THAT(refusal<ValueError>([&] { engine.enqueue(differ); }),
              AllOf(HasSubstr("2 of feature '0' of replica 0"),
                    HasSubstr("3 of feature '0' of replica 1")));
  EXPECT_FALSE(engine.built());
  const std::vector<Batch> same = {three.ragged(), three.ragged()};
  engine.enqueue(same);
  EXPECT_EQ(engine.dequeue()(0, 1).shape, (Shape{3, 4}));
}

TEST(BatchSizeRevision, ErrorsOfAReplicasOwnCallNameThatReplica) {
  Embedding engine = engine_by_batch_size(2);
  const Samples4 two(2), three(3);
  const Batch differs =
      batch_of(two.watched.sparse(), three.favorited.sparse(), two.friends.sparse());
  EXPECT_THAT(refusal<ValueError>([&] { engine.replica(1).enqueue(differs); }),
              AllOf(HasSubstr("got 2 of feature '0' of replica 1"),
                    HasSubstr("3 of feature '1' of replica 1")));
  const Batch mixed = batch_of(two.watched.sparse(), two.favorited.ragged(), two.friends.sparse());
  EXPECT_THAT(refusal<ValueError>([&] { engine.replica(1).enqueue(mixed); }),
              AllOf(HasSubstr("'0' of replica 1"), HasSubstr("'1' of replica 1")));
}

TEST(EngineCases, Case027_RankZeroIsNamed) {
  Embedding engine = engine_by_batch_size();
  const Samples4 two(2);
  const Ids one = {1};
  EXPECT_THAT(refusal<ValueError>([&] {
                engine.enqueue(batch_of(two.watched.sparse(), DenseIds{one, Shape::scalar()},
                                        two.friends.sparse()));
              }),
              AllOf(HasSubstr("feature '1' of replica 0"), HasSubstr("rank 0")));
}

TEST(EngineCases, Case027_UnknownLeadingDimsAreLeftOut) {
  Embedding engine = engine_by_batch_size();
  const Samples4 two(2), three(3);
  const auto unknown = [](const Samples4& of) {
    return batch_of(without_leading_dim(of.watched.sparse()),
                    without_leading_dim(of.favorited.sparse()),
                    without_leading_dim(of.friends.sparse()));
  };
  EXPECT_THAT(refusal<StateError>([&] { engine.enqueue(unknown(two)); }), HasSubstr("build"));
  EXPECT_FALSE(engine.built());

  engine.enqueue(batch_of(without_leading_dim(two.watched.sparse()), two.favorited.sparse(),
                          without_leading_dim(two.friends.sparse())));
  EXPECT_EQ(values(engine.dequeue(), 2), (F{6, 7, 2, 3}));
  const std::vector<Nested<Gradient>> none = {
      Nested<Gradient>::tuple({Gradient::none(), Gradient::none(), Gradient::none()})};
  engine.apply_gradients(none);

  engine.enqueue(unknown(two), {.training = false});
  EXPECT_EQ(values(engine.dequeue(), 0), (F{0, 1, 2, 3, 4, 6, 8, 10}));
  // Nothing is checked but what the data says: sample 2 of 2.
  EXPECT_THAT(refusal<DataError>([&] { engine.enqueue(unknown(three)); }), HasSubstr("'0'"));
}

TEST(EngineCases, Case037_SparseAndRaggedDoNotMixInTheBatchSizeRevision) {
  const Samples4 two(2);
  const Batch mixed = batch_of(two.watched.sparse(), two.favorited.ragged(), two.friends.sparse());
  Embedding engine = engine_by_batch_size();
  EXPECT_THAT(refusal<ValueError>([&] { engine.enqueue(mixed); }),
              AllOf(HasSubstr("sparse"), HasSubstr("'0'"), HasSubstr("ragged"), HasSubstr("'1'")));
  EXPECT_FALSE(engine.built());

  Embedding two_replicas = engine_by_batch_size(2);
  const std::vector<Batch> apart = {two.sparse(), two.ragged()};
  EXPECT_THAT(refusal<ValueError>([&] { two_replicas.enqueue(apart); }),
              AllOf(HasSubstr("of replica 0"), HasSubstr("of replica 1")));

  const Ids ids = {0, 1};
  engine.enqueue(batch_of(two.watched.ragged(), DenseIds{ids, {}}, two.friends.ragged()));
  EXPECT_EQ(values(engine.dequeue(), 1), (F{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(BatchSizeRevision, SequencesHaveTheirLengthWhateverTheFirstBatchBrings) {
  Embedding engine = engine_by_batch_size(1, features_with(2, 0, 0));
  const Samples4 two(2);
  const Ids ids = {0, 1};
  // One id a sample does not fill two positions: refused before anything is built.
  EXPECT_THROW(
      engine.enqueue(batch_of(DenseIds{ids, {}}, two.favorited.sparse(), two.friends.sparse())),
      ValueError);
  EXPECT_FALSE(engine.built());
  engine.enqueue(two.ragged());
  EXPECT_EQ(engine.dequeue()(0).shape, (Shape{2, 2, 4}));
}

TEST(BatchSizeRevision, ABadFirstBatchBuildsNothing) {
  Embedding engine = engine_by_batch_size();
  const Samples4 two(2);
  const Rows bad({{0}, {8}});
  EXPECT_THAT(refusal<DataError>([&] {
                engine.enqueue(batch_of(two.watched.sparse(), bad.sparse(), two.friends.sparse()));
              }),
              HasSubstr("8"));
  EXPECT_FALSE(engine.built());
  const Rows of_three({{0}, {1}, {2}});
  engine.enqueue(batch_of(of_three.sparse(), of_three.sparse(), of_three.sparse()));
  EXPECT_EQ(engine.output_shapes()[0], Shape{3});
}

TEST(BatchSizeRevision, RefusesWhatItDoesNotHave) {
  EmbeddingOptions varying = by_batch_size();
  varying.variable_batch = true;
  EXPECT_THAT(refusal<ValueError>([&] { engine_by_batch_size(1, features(), varying); }),
              HasSubstr("variable_batch"));
  EXPECT_THAT(refusal<ValueError>([] {
                engine_by_batch_size(
                    1, Nested<FeatureConfig>::tuple({feature(video()), feature(user(), 0, {2})}));
              }),
              AllOf(HasSubstr("'1'"), HasSubstr("output_shape"), HasSubstr("(2)")));
  Embedding engine = engine_by_batch_size();
  EXPECT_THROW(engine.enqueue(Samples4(0).ragged()), ValueError);
  EXPECT_FALSE(engine.built());
}

TEST(BatchSizeRevision, RecordsOutputRowsOfASampleInPlaceOfFeatures) {
  Embedding engine = engine_by_batch_size(2, features_with(3, 0, 2));
  engine.build(8);
  const wire::TPUEmbeddingConfiguration record = engine.configuration();
  EXPECT_EQ(record.batch_size_per_tensor_core, 8);
  EXPECT_EQ(record.table_descriptor[0].num_features, 4);
  EXPECT_EQ(record.table_descriptor[1].num_features, 2);
  EXPECT_TRUE(record.feature_descriptor.empty());

  Embedding by_shape = engine_with(accelerator(), features_with(3, 0, 2));
  by_shape.build(8);
  EXPECT_EQ(by_shape.configuration().batch_size_per_tensor_core, 0);
  EXPECT_EQ(by_shape.configuration().feature_descriptor.size(), 3U);
}

/// Both revisions give the same bits for batches that both take.
TEST(BatchSizeRevision, TrainsAsTheOther) {
  Embedding old = engine_by_batch_size(2), young = engine_with(accelerator(2));
  for (int step = 0; step < 3; ++step) {
    const std::vector<OwnedBatch> data = owned(2);
    for (Embedding* engine : {&old, &young})
      train(*engine, ragged_batches(data),
            [](const Activation& a, std::int64_t, std::int32_t) { return loss_gradient(a, 2); });
  }
  EXPECT_EQ(old.digest(), young.digest());
}

}  // namespace
}  // namespace embertable
