// Checkpoints between direct tables, engines and serving.
#include <gmock/gmock.h>

#include "testing/engine/saved_tables.h"
#include "testing/serving/direct_lookups.h"

namespace embertable {
namespace {

using namespace engine_fixture;  // NOLINT: tables, data and batches of the cases
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Temporary = embertable::TemporaryDirectory;

F loss(const Activation& activation, std::int64_t, std::int32_t) {
  return loss_gradient(activation, 2);
}

void train_fixture(DirectEmbedding& direct) {
  const auto data = owned(2);
  train(direct, ragged_batches(data), loss);
}

TEST(EngineCases, Case109_WhatIsSavedIsRestoredIntoEveryClass) {
  const Temporary directory;
  DirectEmbedding ones = direct_with(accelerator(2), constant_features(1));
  ones.save(directory.path());
  DirectEmbedding twos = direct_with(accelerator(2), constant_features(2));
  twos.build();
  EXPECT_EQ(variable(twos, "video", 8, 4), F(32, 2));
  twos.restore(directory.path());
  EXPECT_EQ(variable(twos, "video", 8, 4), F(32, 1));
  EXPECT_EQ(twos.digest(), ones.digest());

  ServingEmbedding serving = ServingEmbedding::open(directory.path(), constant_features(2));
  const Ids ids = {0, 1};
  const Batch batch = {Nested<FeatureIds>::map({{"0", FeatureIds(DenseIds{ids, {}})}}), {}};
  EXPECT_EQ(values_of(serving(batch)), F(8, 1));
}

TEST(DirectCheckpoints, AnEngineGoesOnWhereDirectTablesStoppedAndBack) {
  const Temporary directory;
  for (const char* rule : {"sgd", "adagrad", "adam", "ftrl"}) {
    const Optimizer optimizer(rule, 0.1);
    DirectEmbedding direct = direct_with(accelerator(2), features(), optimizer);
    train_fixture(direct);
    direct.save(directory.path() / rule);

    Embedding engine = engine_with(accelerator(2, 2), features(), optimizer);
    EXPECT_EQ(engine.restore(directory.path() / rule).step, 1);
    engine.build(2);
    EXPECT_EQ(engine.digest(), direct.digest());
    train_once(engine, 2);
    train_fixture(direct);
    EXPECT_EQ(engine.digest(), direct.digest()) << rule;

    engine.save(directory.path() / rule);
    DirectEmbedding again = direct_with(accelerator(2), features(), optimizer);
    EXPECT_EQ(again.restore(directory.path() / rule).step, 2);
    EXPECT_EQ(again.step(), 2);
    EXPECT_EQ(again.digest(), engine.digest());
    train_fixture(again);
    train_once(engine, 2);
    EXPECT_EQ(again.digest(), engine.digest()) << rule;
  }
}

TEST(DirectCheckpoints, ARestoreBeforeBuildReplacesTheInitializer) {
  const Temporary directory;
  direct_with(accelerator(), constant_features(1)).save(directory.path());
  DirectEmbedding direct = direct_with(accelerator(), features_of_no_initializer());
  direct.restore(directory.path());
  EXPECT_FALSE(direct.built());
  EXPECT_EQ(variable(direct, "user", 16, 2), F(32, 1));
}

TEST(DirectCheckpoints, SlotsOfAnotherUpdateAreMissingOrExtraByName) {
  const Temporary directory;
  DirectEmbedding trained = direct_with(accelerator(), features(), Optimizer("adagrad", 0.1));
  trained.save(directory.path());
  DirectEmbedding same = direct_with(accelerator(), features(), slots_only({"accumulators"}));
  EXPECT_TRUE(same.restore(directory.path()).missing.empty());
  EXPECT_EQ(variable(same, "user/accumulators", 16, 2), F(32, 0.1f));
  DirectEmbedding other = direct_with(accelerator(), features(), slots_only({"seen"}));
  const RestoreReport report = other.restore(directory.path());
  EXPECT_THAT(report.missing, ElementsAre("video/seen", "user/seen"));
  EXPECT_THAT(report.extra, ElementsAre("video/accumulators", "user/accumulators"));
}

TEST(DirectCheckpoints, CarryTheCallersState) {
  const Temporary directory;
  DirectEmbedding direct = direct_with(accelerator());
  CheckpointRun run(directory.path());
  direct.save(run, {.json = R"({"epoch": 3})"});
  EXPECT_EQ(read_saved_state(directory.path()).caller.json, R"({"epoch": 3})");
  EXPECT_EQ(direct.restore(directory.path()).caller.json, R"({"epoch": 3})");
}

}  // namespace
}  // namespace embertable
