// What a restore takes, reports and refuses, and what becomes of work that is under way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "checkpoint/file.h"
#include "checkpoint/reader.h"
#include "checkpoint/use_opened.h"
#include "embertable/serving.h"
#include "testing/engine/saved_tables.h"
#include "testing/open_files_limit.h"

namespace embertable {
namespace {

using namespace engine_fixture;  // NOLINT: the vocabulary of these tests
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TablePtr table(const std::string& name, std::int64_t rows, std::int32_t dim) {
  return make_table({.vocabulary_size = rows,
                     .dim = dim,
                     .initializer = Initializer::constant(5),
                     .optimizer = {},
                     .combiner = Combiner::kSum,
                     .name = name});
}

Nested<FeatureConfig> features_on(const std::vector<TablePtr>& tables) {
  std::vector<FeatureConfig> leaves;
  for (const TablePtr& each : tables) leaves.push_back(feature(each));
  return {Structure::tuple(std::vector<Structure>(leaves.size())), std::move(leaves)};
}

Embedding built(const Nested<FeatureConfig>& of, const Optimizer& optimizer = adagrad()) {
  Embedding engine = engine_with(accelerator(), of, optimizer);
  engine.build(2);
  return engine;
}

TEST(Restore, ShardsMayBeMoreThanFilesThatAProcessOpens) {
  const TemporaryDirectory directory;
  const Nested<FeatureConfig> of(feature(table("wide", 300, 2)));
  Embedding saved = engine_with(accelerator(150, 150), of, adagrad());
  saved.build(2);
  saved.save(directory.path());
  const OpenFilesLimit limit(64);
  Embedding engine = built(of);
  engine.restore(directory.path());
  EXPECT_EQ(engine.digest(), saved.digest());
  EXPECT_EQ(digest_checkpoint(directory.path()), saved.digest());
  Embedding plain = engine_with({}, of, adagrad());
  plain.restore(directory.path());
  const ServingEmbedding serving = ServingEmbedding::open(directory.path());
  EXPECT_EQ(serving.tables()[0].vocabulary_size, 300);
}

TEST(Restore, TablesThatDoNotFitAreRefusedTogether) {
  const SavedStep saved;
  Embedding engine =
      built(features_on({table("video", 9, 4), table("user", 16, 3), table("ads", 2, 1)}));
  const std::string before = engine.digest();
  const std::string message = refusal<ValueError>([&] { engine.restore(saved.run()); });
  EXPECT_THAT(message, HasSubstr("'video' has shape [8, 4], the engine's [9, 4]"));
  EXPECT_THAT(message, HasSubstr("'user' has shape [16, 2], the engine's [16, 3]"));
  EXPECT_THAT(message, HasSubstr("'ads' is missing"));
  EXPECT_EQ(engine.digest(), before);
  EXPECT_EQ(engine.step(), 0);
  EXPECT_THAT(refusal<ValueError>([&] { engine.restore(saved.run(), {.partial = true}); }),
              HasSubstr("must have a table in common"));
}

TEST(Restore, AnOpenStepIsTakenWhateverStandsInItsPlace) {
  SavedStep saved;
  const std::string digest = saved.engine.digest();
  const F row_before = row(saved.engine, "user", 3, 2);
  const checkpoint::Reader reader(checkpoint::local_files(), saved.run());
  train_once(saved.engine, 1);
  const std::filesystem::path other = saved.engine.save(saved.run());
  ASSERT_NE(row(saved.engine, "user", 3, 2), row_before);
  std::filesystem::remove_all(saved.step);
  std::filesystem::rename(other, saved.step);
  Embedding engine = engine_with(accelerator(), features_of_no_initializer(), adagrad());
  checkpoint::restore_opened(engine, reader);
  EXPECT_EQ(engine.digest(), digest);
  F served(2);
  checkpoint::serve_opened(reader).read_rows("user", Ids{3}, served);
  EXPECT_EQ(served, row_before);
}

TEST(Restore, PartlyTakesWhatFits) {
  const SavedStep saved;
  for (const bool before_build : {false, true}) {
    Embedding engine = engine_with(
        accelerator(),
        features_on({table("video", 8, 4), table("user", 17, 2), table("ads", 2, 1)}), adagrad());
    if (!before_build) engine.build(2);
    const RestoreReport report = engine.restore(saved.run(), {.partial = true});
    EXPECT_THAT(report.missing, ElementsAre("ads", "ads/accumulators"));
    EXPECT_THAT(report.mismatched,
                ElementsAre("user: the checkpoint has [16, 2], the engine [17, 2]",
                            "user/accumulators: the checkpoint has [16, 2], the engine [17, 2]"));
    EXPECT_THAT(report.extra, IsEmpty());
    engine.build(2);
    EXPECT_EQ(variable(engine, "video", 8, 4), variable(saved.engine, "video", 8, 4));
    EXPECT_EQ(variable(engine, "user", 17, 2), F(34, 5));
    EXPECT_EQ(variable(engine, "ads/accumulators", 2, 1), F(2, 0.1f));
    EXPECT_EQ(engine.step(), 1);
  }
}

TEST(Restore, ASlotOfAnotherShapeIsAMismatch) {
  const SavedStep saved;
  Embedding engine = built(features(), Optimizer("rowwise_adagrad", 0.1));
  EXPECT_THAT(refusal<ValueError>([&] { engine.restore(saved.run()); }),
              HasSubstr("'video/accumulators' has shape [8, 4], the engine's [8]"));
  const RestoreReport report = engine.restore(saved.run(), {.partial = true});
  EXPECT_THAT(report.mismatched,
              ElementsAre("video/accumulators: the checkpoint has [8, 4], the engine [8]",
                          "user/accumulators: the checkpoint has [16, 2], the engine [16]"));
  EXPECT_EQ(variable(engine, "video", 8, 4), variable(saved.engine, "video", 8, 4));
}

TEST(Restore, ChosenTablesAloneChangeAndTheStepStays) {
  const SavedStep saved;
  Embedding engine = built(constant_features(2));
  const RestoreReport report = engine.restore(saved.run(), {.tables = {"user"}});
  EXPECT_EQ(report.step, 1);
  EXPECT_THAT(report.missing, IsEmpty());
  EXPECT_THAT(report.extra, IsEmpty());
  EXPECT_EQ(engine.step(), 0);
  EXPECT_EQ(variable(engine, "video", 8, 4), F(32, 2));
  EXPECT_EQ(variable(engine, "user", 16, 2), variable(saved.engine, "user", 16, 2));
  EXPECT_EQ(variable(engine, "user/accumulators", 16, 2),
            variable(saved.engine, "user/accumulators", 16, 2));
}

TEST(Restore, AChosenTableMustBeOnBothSides) {
  const SavedStep saved;
  Embedding engine = built(features_on({table("video", 8, 4), table("ads", 2, 1)}));
  EXPECT_EQ(refusal<KeyError>([&] { engine.restore(saved.run(), {.tables = {"user"}}); }),
            "restore: the engine has no table 'user'; there are 'video', 'ads'");
  EXPECT_EQ(refusal<KeyError>([&] {
              engine.restore(saved.run(), {.tables = {"video", "ads"}, .partial = true});
            }),
            "restore: " + saved.step.string() + " has no table 'ads'; there are 'video', 'user'");
  EXPECT_EQ(variable(engine, "video", 8, 4), F(32, 5));
}

TEST(Restore, BeforeBuildInTwoPartsMakesOneWhole) {
  const SavedStep saved;
  Embedding engine = engine_with(accelerator(), features_of_no_initializer(), adagrad());
  EXPECT_THROW(engine.restore(saved.run(), {.tables = {"user"}}), std::runtime_error);
  Embedding other = engine_with(accelerator(), constant_features(3), adagrad());
  other.restore(saved.run(), {.tables = {"user"}});
  other.restore(saved.run(), {.tables = {"video"}});
  other.build(2);
  EXPECT_EQ(other.digest(), saved.engine.digest());
  // What failed has left nothing behind.
  engine.restore(saved.run());
  engine.build(2);
  EXPECT_EQ(engine.digest(), saved.engine.digest());
}

TEST(Restore, GivesBackTheCallersStateAndIdMaps) {
  const TemporaryDirectory temporary;
  Embedding engine = built(features());
  const CallerState state = {.json = R"({"epoch": 3})",
                             .tensors = {{"bias", {"F64", {}, std::string(8, '\x01')}}},
                             .blobs = {{"reader", std::string("\x00\xff", 2)}}};
  IdMapBuilder builder(KeyKind::kString);
  builder.add("the hobbit");
  const std::map<std::string, IdMap> maps = {{"books", builder.build()}};
  {
    const CheckpointRun run(temporary.path());
    engine.save(run, state, maps);
    EXPECT_EQ(run.steps(), std::vector<std::int64_t>{0});
    EXPECT_THROW(engine.save(temporary.path()), StateError);  // the lock
  }
  const RestoreReport report = engine.restore(temporary.path());
  EXPECT_EQ(report.caller, state);
  EXPECT_EQ(report.id_maps, maps);
  EXPECT_EQ(report.directory, temporary.path() / "step_000000000000");
}

TEST(Restore, SaysWhichHigherStepsItSkipped) {
  SavedStep saved;
  const std::string first = saved.engine.digest();
  train_once(saved.engine, 1);
  const auto second = saved.engine.save(saved.run());
  std::filesystem::remove(second / "t00000-video-00000-of-00001.safetensors");
  const RestoreReport report = saved.engine.restore(saved.run());
  EXPECT_EQ(report.step, 1);
  ASSERT_EQ(report.skipped.size(), 1u);
  EXPECT_THAT(report.skipped[0], HasSubstr("t00000-video"));
  EXPECT_EQ(saved.engine.digest(), first);
  EXPECT_EQ(saved.engine.step(), 1);
  EXPECT_THROW(saved.engine.restore(second), DataLoss);
  EXPECT_THROW(saved.engine.restore(saved.run() / "none"), IoError);
}

TEST(Restore, SaysWhatDiffersFromTheNumericsOfAnOlderCheckpoint) {
  const SavedStep saved;
  const std::filesystem::path path = saved.step / "manifest.json";
  checkpoint::Manifest manifest =
      checkpoint::Reader(checkpoint::local_files(), saved.step).manifest();
  manifest.numerics_version = 1;
  std::ofstream(path, std::ios::binary) << to_text(manifest);

  std::vector<std::string> said;
  EmbeddingOptions options;
  options.log = [&](std::string_view line) { said.emplace_back(line); };
  Embedding engine = engine_with(accelerator(), features(), adagrad(), options);
  engine.build(2);
  said.clear();
  engine.restore(saved.step);
  EXPECT_EQ(engine.digest(), saved.engine.digest());
  ASSERT_EQ(said.size(), 1u);
  EXPECT_THAT(said[0], HasSubstr("is of numerics version 1, this library of 2"));
  EXPECT_THAT(said[0], HasSubstr("where the weights of a sample cancel"));
}

TEST(Restore, ALogThatThrowsLeavesAllAsItWas) {
  const SavedStep saved;
  checkpoint::Manifest manifest =
      checkpoint::Reader(checkpoint::local_files(), saved.step).manifest();
  manifest.numerics_version = 1;
  std::ofstream(saved.step / "manifest.json", std::ios::binary) << to_text(manifest);
  EmbeddingOptions options;
  options.log = [](std::string_view) { throw std::runtime_error("no room to write"); };
  Embedding engine = engine_with(accelerator(), constant_features(2), adagrad(), options);
  engine.build(2);
  const std::string before = engine.digest();
  EXPECT_EQ(refusal<std::runtime_error>([&] { engine.restore(saved.step); }), "no room to write");
  EXPECT_EQ(engine.digest(), before);
  EXPECT_EQ(engine.step(), 0);
}

TEST(Restore, QueuedBatchesLiveOnAndSeeTheNewRows) {
  SavedStep saved;
  const OwnedBatch data(0);
  Embedding engine = built(constant_features(2));
  engine.enqueue(data.ragged());
  engine.enqueue(data.ragged(), {.training = false});
  engine.restore(saved.run());
  const Activations activations = engine.dequeue();
  saved.engine.enqueue(data.ragged());
  const Activations want = saved.engine.dequeue();
  EXPECT_EQ(values(activations, 0), values(want, 0));
  engine.apply_gradients(Gradients(activations, filled(1)).all());
  saved.engine.apply_gradients(Gradients(want, filled(1)).all());
  EXPECT_EQ(engine.digest(), saved.engine.digest());
  EXPECT_EQ(engine.step(), 2);
  engine.dequeue();
}

TEST(Restore, IsRefusedWhileGradientsAreOutstanding) {
  const SavedStep saved;
  const OwnedBatch data(0);
  Embedding engine = built(constant_features(2));
  engine.enqueue(data.ragged(), {.name = "monday"});
  const Activations activations = engine.dequeue();
  EXPECT_EQ(refusal<StateError>([&] { engine.restore(saved.run()); }),
            "restore: the training batch 'monday' dequeued before still lacks its gradients; call "
            "apply_gradients first, or drop_dequeued_batches");
  engine.apply_gradients(Gradients(activations, filled(0)).all());
  engine.restore(saved.run());
  EXPECT_EQ(engine.digest(), saved.engine.digest());
}

TEST(Restore, FlushesAPendingUpdateFirst) {
  const SavedStep saved;
  EmbeddingOptions options;
  options.pipeline_execution_with_tensor_core = true;
  Embedding engine = engine_with(accelerator(), features(), adagrad(), options);
  train_once(engine, 1);  // its update waits for the next forward
  engine.restore(saved.run(), {.tables = {"user"}});
  EXPECT_EQ(engine.digest(), saved.engine.digest());
  engine.restore(saved.run());
  const OwnedBatch data(0);
  engine.enqueue(data.ragged());
  engine.dequeue();
  EXPECT_EQ(engine.digest(), saved.engine.digest());
}

TEST(Restore, TokensSeeTheRowsAsTheyAreThen) {
  const SavedStep saved;
  const OwnedBatch data(0);
  const auto train_by_token = [&](Embedding& engine, bool restore_between) {
    engine.restore(saved.run());
    LookupResult result = engine.look_up(data.ragged());
    const Gradients gradients(result.activations, filled(1));
    if (restore_between) engine.restore(saved.run());
    engine.apply_gradients(std::move(result.token), gradients.all());
    return engine.digest();
  };
  Embedding one = built(features()), other = built(features());
  EXPECT_EQ(train_by_token(one, true), train_by_token(other, false));
}

TEST(Restore, OntoAnAcceleratorOfAnotherObjectIsRefused) {
  const SavedStep saved;
  const StrategyPtr strategy = accelerator();
  Embedding first = engine_with(strategy, features(), adagrad());
  first.build(2);
  Embedding second = engine_with(strategy, features(), adagrad());
  second.restore(saved.run());  // not built: memory of its own
  EXPECT_THROW(second.build(2), StateError);
  strategy->initialize();
  EXPECT_THROW(first.restore(saved.run()), StateError);
  second.build(2);
  EXPECT_EQ(second.digest(), saved.engine.digest());
  EXPECT_THROW(first.restore(saved.run()), StateError);
}

Nested<FeatureConfig> users(std::int64_t rows) {
  return FeatureConfig{.table = make_table({.vocabulary_size = rows,
                                            .dim = 3,
                                            .initializer = Initializer::normal(0, 1),
                                            .optimizer = {},
                                            .combiner = Combiner::kSum,
                                            .name = "user"})};
}

/// Returns the rows and then the accumulators, [rows, 3] each.
F user_rows(const Embedding& engine, std::int64_t first, std::int64_t last) {
  std::vector<std::int64_t> ids;
  for (std::int64_t row = first; row < last; ++row) ids.push_back(row);
  F all;
  for (const char* variable : {"user", "user/accumulators"}) {
    F rows(ids.size() * 3);
    engine.read_rows(variable, ids, rows);
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

TEST(Restore, GrowsTablesWithTheRowsOfANewTable) {
  constexpr std::int64_t kSaved = 7, kRows = 18;
  const TemporaryDirectory directory;
  Embedding saved = engine_with(accelerator(3, 3), users(kSaved), adagrad());
  saved.build(2);
  saved.assign_rows("user", std::vector<std::int64_t>{0, 6}, F(6, 9));
  saved.assign_rows("user/accumulators", std::vector<std::int64_t>{5}, F(3, 4));
  saved.save(directory.path());
  for (const std::int32_t hosts : {1, 2, 5}) {
    for (const Sharding sharding : {Sharding::kDiv, Sharding::kMod}) {
      for (const bool built : {false, true}) {
        Embedding fresh = engine_with(accelerator(hosts, hosts, sharding), users(kRows), adagrad());
        Embedding grown = engine_with(accelerator(hosts, hosts, sharding), users(kRows), adagrad());
        fresh.build(2);
        if (built) {
          grown.build(2);
          grown.assign_rows("user", std::vector<std::int64_t>{kRows - 1}, F(3, 7));
        }
        EXPECT_THAT(refusal<ValueError>([&] { grown.restore(directory.path()); }),
                    HasSubstr("'user' has shape [7, 3], the engine's [18, 3] (grow restores into "
                              "more rows)"));
        const RestoreReport report = grown.restore(directory.path(), {.grow = {"user"}});
        EXPECT_THAT(report.grown, ElementsAre("user"));
        EXPECT_THAT(report.mismatched, IsEmpty());
        EXPECT_EQ(user_rows(grown, 0, kSaved), user_rows(saved, 0, kSaved));
        EXPECT_EQ(user_rows(grown, kSaved, kRows), user_rows(fresh, kSaved, kRows));
      }
    }
  }
}

TEST(Restore, FirstValuesOfZeroAreWrittenOverRowsThatWereTrained) {
  const TemporaryDirectory directory;
  const auto of = [](std::int64_t rows, bool replicated) {
    return Nested<FeatureConfig>(
        FeatureConfig{.table = make_table({.vocabulary_size = rows,
                                           .dim = 3,
                                           .initializer = Initializer::zeros(),
                                           .optimizer = Optimizer("adam", 0.1),
                                           .name = "user",
                                           .replicated = replicated})});
  };
  Embedding saved = engine_with(accelerator(), of(7, false));
  saved.build(2);
  saved.save(directory.path());
  for (const bool replicated : {false, true}) {
    Embedding grown = engine_with(accelerator(2, 2), of(18, replicated));
    grown.build(2);
    for (const char* variable : {"user", "user/momenta", "user/velocities"})
      grown.assign_rows(variable, Ids{3, 17}, F(6, 7));
    grown.restore(directory.path(), {.grow = {"user"}});
    for (const char* variable : {"user", "user/momenta", "user/velocities"}) {
      F rows(6, 1);
      grown.read_rows(variable, Ids{3, 17}, rows);
      EXPECT_EQ(rows, F(6, 0)) << variable;
    }
  }
}

TEST(Restore, AnInitializerThatThrowsAnythingAmidRowsLeavesTheEngineFailed) {
  const TemporaryDirectory directory;
  Embedding saved = built(users(7));
  saved.save(directory.path());
  bool fails = false;
  TableConfig table = *users(9)[0].table;
  table.initializer = Initializer::function([&](const RowRange&, std::span<float> out) {
    if (fails) throw 7;
    std::ranges::fill(out, 3.0f);
  });
  Embedding grown = built(Nested<FeatureConfig>(feature(make_table(table))));
  fails = true;
  EXPECT_THROW(grown.restore(directory.path(), {.grow = {"user"}}), int);
  EXPECT_THAT(refusal<StateError>([&] { train_once(grown, 1); }),
              HasSubstr("the engine failed in a restore: unknown error; its tables are half read"));
  fails = false;
  grown.restore(directory.path(), {.grow = {"user"}});
  EXPECT_EQ(user_rows(grown, 0, 7), user_rows(saved, 0, 7));
}

TEST(Restore, GrowsNothingThatIsNotNamedOrHasFewerRows) {
  const TemporaryDirectory directory;
  Embedding saved = engine_with(accelerator(), users(7), adagrad());
  saved.build(2);
  saved.save(directory.path());
  const auto refused = [&](std::int64_t rows, const std::vector<std::string>& grow) {
    Embedding engine = engine_with(accelerator(), users(rows), adagrad());
    try {
      EXPECT_THAT(engine.restore(directory.path(), {.grow = grow}).grown, IsEmpty());
    } catch (const std::exception& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refused(7, {"user"}), "");
  EXPECT_THAT(refused(6, {"user"}), HasSubstr("has shape [7, 3], the engine's [6, 3]"));
  EXPECT_THAT(refused(8, {"item"}), HasSubstr("the engine has no table 'item'"));
  EXPECT_THAT(refusal<ValueError>([&] {
                ServingEmbedding other = ServingEmbedding::open(directory.path());
                other.restore(directory.path(), {.grow = {"user"}});
              }),
              HasSubstr("grow must be empty"));
}

TEST(Restore, MakesTablesThatCanBeReadAndSavedBeforeABuild) {
  const SavedStep saved;
  for (const StrategyPtr& strategy : {accelerator(), StrategyPtr()}) {
    Embedding engine = engine_with(strategy, features(), adagrad());
    const TemporaryDirectory other;
    EXPECT_THROW(engine.save(other.path()), StateError);
    EXPECT_TRUE(std::filesystem::is_empty(other.path()));
    engine.restore(saved.run());
    EXPECT_FALSE(engine.built());
    EXPECT_EQ(engine.digest(), saved.engine.digest());
    const std::filesystem::path step = engine.save(other.path());
    EXPECT_EQ(step.filename(), std::filesystem::path(saved.step).filename());
    EXPECT_EQ(digest_checkpoint(step), digest_checkpoint(saved.step));
    if (strategy) {
      engine.build(2);
    } else {
      engine.build();
    }
    EXPECT_EQ(engine.digest(), saved.engine.digest());
  }
}

TEST(Construction, RefusesNamesThatASaveWouldRefuse) {
  const auto refused = [&](const std::vector<TablePtr>& tables) {
    return refusal<ValueError>([&] { engine_with(accelerator(), features_on(tables), adagrad()); });
  };
  EXPECT_EQ(refused({table("__metadata__", 2, 1)}),
            "table '__metadata__': the name is taken by another variable or reserved");
  EXPECT_EQ(refused({table("a", 2, 1), table("a/accumulators", 2, 1)}),
            "table 'a/accumulators': the name is taken by another variable or reserved");
  EXPECT_EQ(refused({table("caf\xe9", 2, 1)}), "table 'caf\xef\xbf\xbd': the name is not UTF-8");
  EXPECT_EQ(refused({table("a", 2, 1), table("a/b", 2, 1)}), "");
}

}  // namespace
}  // namespace embertable
