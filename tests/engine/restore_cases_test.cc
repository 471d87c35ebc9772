// Engine cases 100 to 107: checkpoints. Left out: 100's second half (an accelerator that another
// object's tables were loaded to refuses the first object's calls), 103, 108 and 109 (no serving
// object, hooks or DirectEmbedding are offered), 104's Adam and FTRL (rules that do not exist yet).
#include <gtest/gtest.h>

#include <algorithm>

#include "checkpoint/reader.h"
#include "testing/engine/saved_tables.h"

namespace embertable {
namespace {

using namespace engine_fixture;  // NOLINT: the vocabulary of these tests

Embedding plain(const Nested<FeatureConfig>& of, const std::optional<Optimizer>& optimizer) {
  return Embedding(of, optimizer, nullptr);
}

/// Every tensor of a checkpoint by name and whole shape, sorted.
std::vector<std::string> tensors_of(const std::filesystem::path& step) {
  const checkpoint::Reader reader(checkpoint::local_files(), step);
  std::vector<std::string> all;
  for (const checkpoint::SavedTable& table : reader.manifest().tables) {
    const std::string rows = " [" + std::to_string(table.vocabulary_size);
    const std::string matrix = rows + ", " + std::to_string(table.dim) + "]";
    all.push_back(table.name + matrix);
    for (const checkpoint::SavedSlot& slot : table.slots)
      all.push_back(table.name + "/" + slot.name + (slot.row_wise ? rows + "]" : matrix));
  }
  std::sort(all.begin(), all.end());
  return all;
}

TEST(EngineCases, Case100_OneTensorForATable) {
  const TemporaryDirectory temporary;
  Embedding engine = engine_with(accelerator(2, 2), constant_features(1));
  engine.build(2);
  const auto step = engine.save(temporary.path());
  EXPECT_EQ(tensors_of(step), (std::vector<std::string>{"user [16, 2]", "video [8, 4]"}));
  const checkpoint::Reader reader(checkpoint::local_files(), step);
  F rows(8 * 4);
  reader.variable("video").read(0, rows);
  EXPECT_EQ(rows, F(8 * 4, 1));
}

TEST(EngineCases, Case101_ARestoreReplacesTheTables) {
  const TemporaryDirectory temporary;
  Embedding ones = engine_with(accelerator(), constant_features(1));
  ones.build(2);
  ones.save(temporary.path());
  Embedding twos = engine_with(accelerator(), constant_features(2));
  twos.build(2);
  EXPECT_EQ(variable(twos, "video", 8, 4), F(32, 2));
  twos.restore(temporary.path());
  EXPECT_EQ(variable(twos, "video", 8, 4), F(32, 1));
  EXPECT_EQ(variable(twos, "user", 16, 2), F(32, 1));
}

TEST(EngineCases, Case102_ARestoreBeforeBuildReplacesTheInitializer) {
  const TemporaryDirectory temporary;
  Embedding ones = engine_with(accelerator(), constant_features(1));
  ones.build(2);
  ones.save(temporary.path());
  for (const std::int32_t hosts : {1, 3}) {
    Embedding engine = engine_with(accelerator(6, hosts), features_of_no_initializer());
    engine.restore(temporary.path());
    EXPECT_FALSE(engine.built());
    engine.build(2);
    EXPECT_EQ(variable(engine, "video", 8, 4), F(32, 1));
    const auto data = owned(6);
    engine.enqueue(ragged_batches(data), {.training = false});
    EXPECT_EQ(values(engine.dequeue(), 2, 5), F(4, 1));
  }
  Embedding without = plain(features_of_no_initializer(), std::nullopt);
  without.restore(temporary.path());
  EXPECT_EQ(without.embedding_tables().size(), 2u);
  EXPECT_EQ(variable(without, "user", 16, 2), F(32, 1));
}

TEST(EngineCases, Case104_EveryObjectOfATableWritesTheSameTensors) {
  const TemporaryDirectory temporary;
  int runs = 0;
  const auto saved = [&](Embedding engine) {
    engine.build(2);
    return tensors_of(engine.save(temporary.path() / std::to_string(runs++)));
  };
  const std::map<std::string, std::size_t> slots = {
      {"sgd", 0}, {"adagrad", 1}, {"rowwise_adagrad", 1}, {"adam", 2}, {"ftrl", 2}};
  for (const auto& [rule, count] : slots) {
    const Optimizer optimizer(rule, 0.1);
    const auto want = saved(engine_with(accelerator(), features(), optimizer));
    EXPECT_EQ(want.size(), 2 + 2 * count);
    EXPECT_EQ(saved(engine_with(accelerator(6, 3), features(), optimizer)), want);
    EXPECT_EQ(saved(engine_with(accelerator(5, 5, Sharding::kMod), features(), optimizer)), want);
    EXPECT_EQ(saved(plain(features(), optimizer)), want);
    DirectEmbedding direct(features(), optimizer, accelerator(2));
    EXPECT_EQ(tensors_of(direct.save(temporary.path() / std::to_string(runs++))), want);
  }
}

TEST(EngineCases, Case105_AnyNumberOfHostsGoesOnToTheSameBits) {
  constexpr std::int32_t kReplicas = 30;  // one arithmetic for every number of hosts
  for (const Sharding saved_as : {Sharding::kDiv, Sharding::kMod}) {
    SavedStep saved(kReplicas, 3, saved_as, adagrad());
    const std::string at_save = saved.engine.digest();
    train_once(saved.engine, kReplicas);
    for (const std::int32_t hosts : {1, 2, 5}) {
      for (const Sharding sharding : {Sharding::kDiv, Sharding::kMod}) {
        for (const bool built : {false, true}) {
          Embedding engine =
              engine_with(accelerator(kReplicas, hosts, sharding), features(), adagrad());
          if (built) engine.build(2);
          const RestoreReport report = engine.restore(saved.run());
          EXPECT_EQ(report.step, 1);
          EXPECT_EQ(engine.step(), 1);
          engine.build(2);
          EXPECT_EQ(engine.digest(), at_save);
          EXPECT_EQ(variable(engine, "user/accumulators", 16, 2)[32 - 1], 0.1f);
          train_once(engine, kReplicas);
          EXPECT_EQ(engine.digest(), saved.engine.digest());
          EXPECT_EQ(engine.step(), 2);
        }
      }
    }
    Embedding bare = plain(features(), adagrad());
    bare.restore(saved.run());
    bare.build();
    EXPECT_EQ(bare.digest(), at_save);
  }
}

TEST(EngineCases, Case106_APlainFileFeedsABuiltAccelerator) {
  const TemporaryDirectory temporary;
  Embedding bare = plain(features(), adagrad());
  bare.build();
  bare.assign_rows("video", Ids{0, 1}, F(8, 7));
  bare.save(temporary.path());
  Embedding engine = engine_with(accelerator(2, 2), constant_features(2), adagrad());
  engine.build(2);
  engine.restore(temporary.path());
  const auto data = owned(2);
  engine.enqueue(ragged_batches(data), {.training = false});
  EXPECT_EQ(values(engine.dequeue(), 0, 0), (F{7, 7, 7, 7, 14, 14, 14, 14}));
}

TEST(EngineCases, Case107_SlotsWithoutCounterpartAreReported) {
  const TemporaryDirectory temporary;
  SavedStep with;
  Embedding without = plain(constant_features(2), std::nullopt);
  const RestoreReport unused = without.restore(with.run());
  EXPECT_EQ(unused.extra, (std::vector<std::string>{"video/accumulators", "user/accumulators"}));
  EXPECT_TRUE(unused.missing.empty() && unused.mismatched.empty());
  without.build();
  EXPECT_EQ(variable(without, "video", 8, 4), variable(with.engine, "video", 8, 4));

  without.save(temporary.path());
  for (const bool built : {false, true}) {
    Embedding engine = engine_with(accelerator(), constant_features(2), adagrad());
    if (built) engine.build(2);
    const RestoreReport report = engine.restore(temporary.path());
    EXPECT_EQ(report.missing,
              (std::vector<std::string>{"video/accumulators", "user/accumulators"}));
    EXPECT_TRUE(report.extra.empty() && report.mismatched.empty());
    engine.build(2);
    EXPECT_EQ(variable(engine, "video", 8, 4), variable(with.engine, "video", 8, 4));
    EXPECT_EQ(variable(engine, "video/accumulators", 8, 4), F(32, 0.1f));
  }
}

}  // namespace
}  // namespace embertable
