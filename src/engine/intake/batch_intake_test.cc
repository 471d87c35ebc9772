#include "engine/intake/batch_intake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "embertable/errors.h"
#include "testing/engine/batches.h"

namespace embertable::engine {
namespace {

using namespace engine_fixture;  // NOLINT: the vocabulary of these tests
using testing::HasSubstr;

StrategyPtr strategy_of(std::int32_t replicas, std::optional<std::int32_t> cores_per_replica = {}) {
  return make_strategy({.replicas_per_host = replicas, .cores_per_replica = cores_per_replica});
}

/// What an engine of the fixture says of the first batches that it gets.
class BatchIntakeTest : public testing::Test {
 protected:
  explicit BatchIntakeTest(StrategyPtr strategy = strategy_of(2))
      : setup_(features(), Optimizer("sgd", 0.1), std::move(strategy), EmbeddingOptions{}, nullptr),
        intake_(setup_) {}

  /// The shapes that the batches build with, or the message of the error.
  std::string first(std::span<const Batch> batches) {
    Feed feed = make_feed(setup_, batches, {});
    std::string built;
    try {
      intake_.check(feed, "enqueue", false);
      for (const Shape& shape : intake_.first_shapes(feed, "enqueue")) built += shape.to_string();
    } catch (const ValueError& error) {
      return error.what();
    }
    return built;
  }

  const engine::Setup setup_;
  BatchIntake intake_;
  const OwnedBatch owned_{0};
};

TEST_F(BatchIntakeTest, TheFirstGoodBatchesBuildWithTheirShapes) {
  EXPECT_EQ(first(std::vector{owned_.ragged()}), "(2)(2)(2)");
  EXPECT_EQ(first(std::vector{owned_.ragged(), owned_.sparse()}), "(2)(2)(2)");
}

TEST_F(BatchIntakeTest, TheNumberOfBatchesIsCheckedBeforeTheirStructure) {
  const Batch alone = batch_of(owned_.watched.ragged());
  EXPECT_THAT(first(std::vector(3, alone)), HasSubstr("one for each of 2 replicas, got 3"));
  EXPECT_THAT(first(std::vector(2, alone)), HasSubstr("features"));
}

TEST_F(BatchIntakeTest, StructureIsCheckedBeforeShapes) {
  const Rows one(Samples{{0}});
  const Batch other = batch_of(one.ragged(), one.ragged(), one.ragged());
  EXPECT_THAT(first(std::vector{owned_.ragged(), other}),
              HasSubstr("replica 1 asks for output shape (1), replica 0 for (2)"));
  EXPECT_THAT(first(std::vector{other, batch_of(one.ragged())}), HasSubstr("features"));
}

TEST_F(BatchIntakeTest, ABadIdIsFoundBeforeTheBuild) {
  const Rows bad(Samples{{0}, {8}});
  EXPECT_THAT(first(std::vector{
                  batch_of(bad.ragged(), owned_.favorited.ragged(), owned_.friends.ragged())}),
              HasSubstr("8"));
}

class CutBatchIntakeTest : public BatchIntakeTest {
 protected:
  CutBatchIntakeTest() : BatchIntakeTest(strategy_of(1, 2)) {}
};

TEST_F(CutBatchIntakeTest, CoresShareTheBatchOfTheirReplica) {
  EXPECT_EQ(first(std::vector{owned_.sparse()}), "(1)(1)(1)");
  EXPECT_THAT(first(std::vector{owned_.ragged()}), HasSubstr("ragged ids cannot be cut"));
}

TEST(BucketChoice, IsMadeByTheFirstCallThatFeedsAStep) {
  const engine::Setup setup(features(), Optimizer("sgd", 0.1), strategy_of(2), EmbeddingOptions{},
                            nullptr);
  std::vector<StepTable> tables(setup.assembly.tables.size());
  for (StepTable& table : tables) table.rows = {.stride = 64, .dim = 64, .rows = 1 << 20};
  std::vector<NamedShares> shares(tables.size());
  BucketChoice choice(setup);
  choice.use(tables, shares, std::vector<Shape>(3, Shape{1 << 18}));

  const Ids many(1 << 18, 0), one(1, 0);
  const auto of = [](const Ids& ids) {
    return std::vector{batch_of(DenseIds{ids, {}}, DenseIds{ids, {}}, DenseIds{ids, {}})};
  };
  const std::vector<Batch> large = of(many), small = of(one);
  Step step;
  choice.choose(step, make_feed(setup, large, {}));
  const std::vector<UpdateCut> cuts = step.cuts;
  ASSERT_EQ(cuts.size(), tables.size());
  EXPECT_GT(cuts[0].buckets, 1);
  choice.choose(step, make_feed(setup, small, {}));
  EXPECT_EQ(step.cuts, cuts);

  Step of_one_replica;  // the other may bring as much as in the last step
  choice.choose(of_one_replica, make_feed(setup, small, {}, 1));
  EXPECT_EQ(of_one_replica.cuts[0].buckets, 1);
  for (NamedShares& share : shares) share.entries = 1 << 20;
  Step next;
  choice.choose(next, make_feed(setup, small, {}, 1));
  EXPECT_GT(next.cuts[0].buckets, 1);
}

TEST(Feed, OptionsSayWhatIsFed) {
  const engine::Setup setup(features(), Optimizer("sgd", 0.1), strategy_of(2, 2),
                            EmbeddingOptions{}, nullptr);
  const OwnedBatch owned(0);
  const std::vector<Batch> batches = {owned.sparse()};
  const EnqueueOptions named = {.name = "monday"};
  const Feed all = make_feed(setup, batches, named);
  EXPECT_EQ(all.cores.last, 4);
  EXPECT_TRUE(all.cut && all.training);
  EXPECT_EQ(all.name, "monday");
  const Feed device = make_feed(setup, batches, {.mode_override = "inference", .device = "TPU:2"});
  EXPECT_EQ(device.cores.first, 2);
  EXPECT_EQ(device.cores.last, 3);
  EXPECT_FALSE(device.cut || device.training);
  const Feed replica = make_feed(setup, batches, {}, 1);
  EXPECT_EQ(replica.cores.first, 2);
  EXPECT_EQ(replica.cores.last, 4);
  EXPECT_EQ(&replica.batch_of(3), &batches.front());
}

}  // namespace
}  // namespace embertable::engine
