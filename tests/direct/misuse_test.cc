// What direct lookups and steps refuse, and that they change nothing then.
#include <gmock/gmock.h>

#include <thread>

#include "testing/serving/direct_lookups.h"
#include "testing/temporary_directory.h"

namespace embertable {
namespace {

using namespace engine_fixture;  // NOLINT: tables, data and batches of the cases
using ::testing::HasSubstr;

/// Direct tables of two replicas that have looked up.
struct LookedUp {
  std::vector<OwnedBatch> data = owned(2);
  DirectEmbedding direct = direct_with(accelerator(2), features(), Optimizer("adagrad", 0.1));
  std::vector<LookupOutput> lookups = direct.embedding_lookup(ragged_batches(data));
  DirectGradients ones = DirectGradients(lookups, filled(1));
  std::string before = direct.digest();

  /// Why a step is refused; nothing has changed then.
  template <class Error>
  std::string refused(std::span<const LookupOutput> of, std::span<const Nested<Gradient>> by) {
    const std::string text = refusal<Error>([&] { direct.apply_gradients(of, by); });
    EXPECT_EQ(direct.digest(), before);
    EXPECT_EQ(direct.step(), 0);
    return text;
  }
};

TEST(DirectMisuse, CountsAreThoseOfTheReplicas) {
  LookedUp made;
  EXPECT_EQ(made.refused<ValueError>(std::span(made.lookups).first(1), made.ones.all()),
            "DirectEmbedding: there must be one lookup for each of 2 replicas, got 1");
  EXPECT_EQ(made.refused<ValueError>(made.lookups, made.ones.all().first(1)),
            "DirectEmbedding: there must be one tree of gradients for each of 2 replicas, got 1");
  EXPECT_THAT(refusal<ValueError>(
                  [&] { made.direct.apply_gradients(made.lookups[0], made.ones.all()[0]); }),
              HasSubstr("one lookup for each of 2 replicas, got 1"));
  const std::vector<Batch> three(3, made.data[0].ragged());
  EXPECT_EQ(refusal<ValueError>([&] { made.direct.embedding_lookup(three); }),
            "DirectEmbedding: there must be one batch for each of 2 replicas, or one for all, got "
            "3");
  EXPECT_EQ(made.direct.embedding_lookup(std::span(three).first(1)).size(), 2u);
}

TEST(DirectMisuse, LookupsAreOfThisObjectAndSucceeded) {
  LookedUp made;
  std::vector<LookupOutput> none(2);
  EXPECT_EQ(made.refused<StateError>(none, made.ones.all()),
            "gradients: the lookup of replica 0 must be one of this object that succeeded, got an "
            "output that keeps no entries");
  DirectEmbedding other = direct_with(accelerator(2));
  const auto others = other.embedding_lookup(ragged_batches(made.data));
  EXPECT_THAT(made.refused<StateError>(others, made.ones.all()),
              HasSubstr("got one of another DirectEmbedding"));
  std::vector<LookupOutput> served(2);
  ServingEmbedding serving(features());
  for (LookupOutput& output : served) serving.embedding_lookup(made.data[0].ragged(), output);
  EXPECT_THAT(made.refused<StateError>(served, made.ones.all()), HasSubstr("keeps no entries"));
  made.lookups[1] = LookupOutput();
  EXPECT_THAT(made.refused<StateError>(made.lookups, made.ones.all()), HasSubstr("replica 1"));
}

TEST(DirectMisuse, GradientsHaveTheFormOfTheLookups) {
  LookedUp made;
  const F three(3, 1);
  std::vector<Nested<Gradient>> trees(made.ones.all().begin(), made.ones.all().end());
  trees[1][2] = Gradient{three, {}};
  EXPECT_EQ(made.refused<ValueError>(made.lookups, trees),
            "feature '2': the gradient of replica 1 must have shape (2, 2), got 3 values");
  const std::vector<Nested<Gradient>> leaves(2, Nested<Gradient>(Gradient{three, {}}));
  EXPECT_THAT(made.refused<ValueError>(made.lookups, leaves), HasSubstr("gradients"));
  std::vector<Nested<Gradient>> lists;
  for (const Nested<Gradient>& tree : made.ones.all())
    lists.emplace_back(Structure::list(std::vector<Structure>(3)), tree.leaves());
  EXPECT_THAT(made.refused<TypeError>(made.lookups, lists), HasSubstr("gradients"));
}

TEST(DirectMisuse, ABadBatchOfOneReplicaEmptiesAllOutputs) {
  LookedUp made;
  const Rows bad(Samples{{99}});
  std::vector<Batch> batches = ragged_batches(made.data);
  batches[1].features[2] = bad.ragged();
  EXPECT_EQ(refusal<DataError>([&] { made.direct.embedding_lookup(batches, made.lookups); }),
            "feature '2', replica 1, sample 0, position 0: id must be in 0..15 (vocabulary_size "
            "16), got 99");
  for (const LookupOutput& output : made.lookups) EXPECT_EQ(output.size(), 0);
  EXPECT_THAT(made.refused<StateError>(made.lookups, made.ones.all()),
              HasSubstr("keeps no entries"));
}

TEST(DirectMisuse, ARateThatIsNoRateChangesNothing) {
  double rate = -1;
  const Optimizer dynamic("sgd", LearningRate::dynamic([&] { return rate; }));
  DirectEmbedding direct = direct_with(accelerator(), one_feature(Combiner::kSum), dynamic);
  const Rows rows(Samples{{1}});
  const LookupOutput output = direct.embedding_lookup(batch_of(rows.ragged()));
  const DirectGradients ones({&output, 1}, filled(1));
  const std::string before = direct.digest();
  EXPECT_EQ(refusal<ValueError>([&] { direct.apply_gradients(output, ones.all()[0]); }),
            "table 'user': learning_rate must be finite and >= 0, its function gave -1 for step 1");
  EXPECT_EQ(direct.digest(), before);
  rate = 0.5;
  direct.apply_gradients(output, ones.all()[0]);
  EXPECT_EQ(variable(direct, "user", 16, 2)[2], 1.5f);
}

TEST(DirectMisuse, AnUpdateThatThrowsFailsTheObjectUntilARestore) {
  const embertable::TemporaryDirectory directory;
  LookedUp made;
  made.direct.save(directory.path());
  const auto throws = [](const DirectUpdate& table) {
    table.parameters.data[0] = 17;
    throw std::runtime_error("out of luck");
  };
  EXPECT_THROW(made.direct.apply_gradients(made.lookups, made.ones.all(), throws),
               std::runtime_error);
  EXPECT_THAT(refusal<StateError>([&] { made.direct.embedding_lookup(made.data[0].ragged()); }),
              HasSubstr("out of luck"));
  EXPECT_THAT(
      refusal<StateError>([&] { made.direct.apply_gradients(made.lookups, made.ones.all()); }),
      HasSubstr("out of luck"));
  made.direct.restore(directory.path());
  EXPECT_EQ(made.direct.digest(), made.before);
  made.direct.apply_gradients(made.lookups, made.ones.all());
  EXPECT_EQ(made.direct.step(), 1);
}

TEST(DirectMisuse, SlotsAloneStepNoRow) {
  DirectEmbedding direct =
      direct_with(accelerator(), one_feature(Combiner::kSum), slots_only({"seen"}));
  const Rows rows(Samples{{1}});
  const LookupOutput output = direct.embedding_lookup(batch_of(rows.ragged()));
  const DirectGradients ones({&output, 1}, filled(1));
  EXPECT_THAT(refusal<StateError>([&] { direct.apply_gradients(output, ones.all()[0]); }),
              HasSubstr("slots_only"));
  std::vector<LookupOutput> outputs(1);
  outputs[0] = direct.embedding_lookup(batch_of(rows.ragged()));
  int updates = 0;
  direct.apply_gradients(outputs, ones.all(), [&](const DirectUpdate&) { ++updates; });
  EXPECT_EQ(updates, 1);  // the refused call has changed nothing
}

TEST(DirectMisuse, AnUpdateMustNotCallItsObject) {
  LookedUp made;
  EXPECT_THAT(refusal<StateError>([&] {
                made.direct.apply_gradients(made.lookups, made.ones.all(),
                                            [&](const DirectUpdate&) { made.direct.digest(); });
              }),
              HasSubstr("must not call"));
}

TEST(DirectThreads, ReplicasLookUpOnThreadsOfTheirOwn) {
  constexpr std::int32_t kReplicas = 4;
  const auto data = owned(kReplicas);
  DirectEmbedding direct = direct_with(accelerator(kReplicas), features(), sgd(0.1)),
                  alone = direct_with(accelerator(kReplicas), features(), sgd(0.1));
  std::vector<LookupOutput> lookups(kReplicas);
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < kReplicas; ++r)
    threads.emplace_back([&, r] { direct.embedding_lookup(data[r].sparse(), lookups[r]); });
  for (std::thread& thread : threads) thread.join();
  direct.apply_gradients(lookups, DirectGradients(lookups, filled(1)).all());
  train(alone, sparse_batches(data), filled(1));
  EXPECT_EQ(direct.digest(), alone.digest());
}

}  // namespace
}  // namespace embertable
