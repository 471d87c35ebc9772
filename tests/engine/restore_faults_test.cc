// Disks that fail under an engine: the old state, the new one, or an error; never a mixture.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "checkpoint/run_directory.h"
#include "engine/engine.h"
#include "engine/save.h"
#include "testing/each_operation.h"
#include "testing/engine/saved_tables.h"
#include "testing/sanitized.h"

namespace embertable {
namespace {

using namespace engine_fixture;  // NOLINT: the vocabulary of these tests
using checkpoint::MemoryFiles;
using checkpoint::OpenRun;
using testing::HasSubstr;

std::unique_ptr<Embedding> make_engine(std::int32_t hosts = 1,
                                       Nested<FeatureConfig> of = constant_features(2)) {
  return std::make_unique<Embedding>(std::move(of), adagrad(), accelerator(hosts, hosts),
                                     EmbeddingOptions());
}

/// A built engine of the fixture after `steps` steps with gradients of ones.
std::unique_ptr<Embedding> trained(std::int32_t steps) {
  auto engine = make_engine(1, features());
  engine->build(2);
  const OwnedBatch data(0);
  const Batch batch = data.ragged();
  for (std::int32_t i = 0; i < steps; ++i) {
    engine->enqueue(batch);
    const Activations activations = engine->dequeue();
    engine->apply_gradients(Gradients(activations, filled(1)).all());
  }
  return engine;
}

void save(const Embedding& object, const OpenRun& run, const CallerState& state) {
  engine::Engine& engine = engine::engine_of(object);
  const auto [held, no_step, tables, count] = engine.settled_tables("save");
  engine::save_tables(engine.setup, tables, count.updates(), {run.directory(), &run}, state, {});
}

void save(const Embedding& object, checkpoint::FileSystem& files) {
  save(object, OpenRun(files, "/run"), {.json = std::to_string(object.step())});
}

RestoreReport restore(Embedding& object, checkpoint::FileSystem& files,
                      const RestoreOptions& options = {}) {
  const std::filesystem::path run = "/run";
  return engine::engine_of(object).restore({files, run}, options);
}

/// Digest of the tables that a new object takes from the run, and the caller's state.
std::string restored(checkpoint::FileSystem& files) {
  const auto engine = make_engine(1, features_of_no_initializer());
  const RestoreReport report = restore(*engine, files);
  engine->build(2);
  return engine->digest() + " " + report.caller.json;
}

TEST(RestoreFaults, ASaveWithKeepIsTheOldStepOrTheNew) {
  const auto first = trained(1), second = trained(2);
  MemoryFiles before;
  save(*first, before);
  const std::string old_state = first->digest() + " 1", new_state = second->digest() + " 2";
  checkpoint::at_each_operation(
      before,
      [&](checkpoint::FileSystem& files) {
        const OpenRun run(files, "/run");
        save(*second, run, {.json = "2"});
        checkpoint::keep_newest(run, 1);
      },
      [&](MemoryFiles& files, bool succeeded) {
        const std::string found = restored(files);
        EXPECT_TRUE(found == new_state || (!succeeded && found == old_state)) << found;
      });
}

TEST(RestoreFaults, ANewObjectStaysAsItWas) {
  const auto saved = trained(1);
  MemoryFiles files;
  save(*saved, files);
  std::int64_t failures = 0;
  for (bool succeeded = false; !succeeded; ++failures) {
    const auto engine = make_engine(3);
    files.fail_at(failures, MemoryFiles::Fault::kError);
    try {
      restore(*engine, files);
      succeeded = true;
    } catch (const IoError& error) {
      EXPECT_THAT(error.what(), HasSubstr("made to fail"));
      EXPECT_EQ(engine->step(), 0);
      files.heal();
      if (failures % 2 == 0) restore(*engine, files);
    }
    files.heal();
    engine->build(2);
    const bool restored_at_last = succeeded || failures % 2 == 0;
    EXPECT_EQ(engine->digest() == saved->digest(), restored_at_last);
    EXPECT_EQ(engine->step(), restored_at_last ? 1 : 0);
  }
  EXPECT_GT(failures, 10);
}

TEST(RestoreFaults, ABuiltObjectStaysAsItWasOrSaysThatItIsHalfRead) {
  const auto saved = trained(1);
  MemoryFiles files;
  save(*saved, files);
  const std::string twos = [] {
    const auto engine = make_engine(3);
    engine->build(2);
    return engine->digest();
  }();
  std::int64_t whole = 0, half_read = 0;
  for (bool succeeded = false; !succeeded;) {
    const auto engine = make_engine(3);
    engine->build(2);
    files.fail_at(whole + half_read, MemoryFiles::Fault::kError);
    try {
      restore(*engine, files);
      succeeded = true;
    } catch (const IoError& error) {
      const bool half = std::string(error.what()).find("half read") != std::string::npos;
      ++(half ? half_read : whole);
      EXPECT_EQ(engine->step(), 0);
      if (!half) {
        EXPECT_EQ(engine->digest(), twos);
      } else {
        EXPECT_THAT(refusal<StateError>([&] { engine->digest(); }),
                    HasSubstr("digest: the engine failed in a restore: /run/step_000000000001/"));
        EXPECT_THROW(restore(*engine, files, {.tables = {"user"}}), StateError);
      }
      files.heal();
      restore(*engine, files);
    }
    EXPECT_EQ(engine->digest(), saved->digest());
    EXPECT_EQ(engine->step(), 1);
  }
  EXPECT_GT(whole, 10);
  EXPECT_EQ(half_read, 2);  // one block of each table: files are open by then
}

TEST(RestoreFaults, AnObjectThatIsRestoredButNotBuiltSaysThatItIsHalfRead) {
  MemoryFiles first, second;
  save(*trained(1), first);
  const auto saved = trained(2);
  save(*saved, second);
  std::int64_t failures = 0, half_read = 0;
  for (bool succeeded = false; !succeeded; ++failures) {
    const auto engine = make_engine();
    restore(*engine, first);
    second.fail_at(failures, MemoryFiles::Fault::kError);
    try {
      restore(*engine, second);
      succeeded = true;
    } catch (const IoError& error) {
      if (std::string(error.what()).find("half read") == std::string::npos) continue;
      ++half_read;
      const TemporaryDirectory directory;
      EXPECT_THAT(refusal<StateError>([&] { engine->digest(); }),
                  HasSubstr("digest: the engine failed in a restore"));
      EXPECT_THROW(engine->save(directory.path()), StateError);
      second.heal();
      restore(*engine, second);
      EXPECT_EQ(engine->digest(), saved->digest());
    }
    second.heal();
  }
  EXPECT_GT(half_read, 0);
}

TEST(RestoreFaults, APlainObjectThatIsHalfReadShowsNoTables) {
  const auto saved = trained(1);
  MemoryFiles files;
  save(*saved, files);
  bool shown = true;
  for (std::int64_t at = 0; shown; ++at) {
    Embedding plain(features(), adagrad(), nullptr);
    plain.build();
    files.fail_at(at, MemoryFiles::Fault::kError);
    ASSERT_ANY_THROW(restore(plain, files));
    files.heal();
    try {
      plain.embedding_tables();
    } catch (const StateError& error) {
      EXPECT_THAT(error.what(), HasSubstr("embedding_tables: the engine failed in a restore"));
      shown = false;
    }
  }
}

/// A built object restores from a run with an old step and a new one that is damaged: it takes the
/// old one, or stays as it was.
class DamagedRun {
 public:
  DamagedRun() {
    const auto first = trained(1), second = trained(2);
    save(*first, files);
    save(*second, files);
    old_ = first->digest();
    engine_ = make_engine();
    engine_->build(2);
    before_ = engine_->digest();
  }

  /// Which of the two came true: 'o', 's', or '?'.
  char outcome() {
    try {
      const RestoreReport report = restore(*engine_, files);
      const bool old = report.step == 1 && report.skipped.size() == 1 && engine_->digest() == old_;
      engine_ = make_engine();
      engine_->build(2);
      return old ? 'o' : '?';
    } catch (const DataLoss&) {
      return engine_->digest() == before_ && engine_->step() == 0 ? 's' : '?';
    }
  }

  /// The new step's files.
  std::map<std::string, std::string*> contents() {
    auto all = files.contents();
    std::erase_if(all, [](const auto& entry) {
      return entry.first.find("step_000000000002") == std::string::npos;
    });
    return all;
  }

  MemoryFiles files;

 private:
  std::unique_ptr<Embedding> engine_;
  std::string before_, old_;
};

TEST(RestoreFaults, EveryFlippedByteIsNoticed) {
  constexpr std::size_t kStride = kSanitized ? 7 : 1;
  DamagedRun run;
  for (const auto& [path, text] : run.contents()) {
    const bool manifest = path.ends_with(checkpoint::kManifestName);
    for (std::size_t i = 0; i < text->size(); i += kStride) {
      (*text)[i] = static_cast<char>((*text)[i] ^ (1 << i % 8));
      ASSERT_EQ(run.outcome(), manifest ? 'o' : 's') << path << " byte " << i;
      (*text)[i] = static_cast<char>((*text)[i] ^ (1 << i % 8));
    }
  }
}

TEST(RestoreFaults, EveryCutEndIsNoticed) {
  DamagedRun run;
  for (const auto& [path, text] : run.contents()) {
    const std::string whole = *text;
    for (std::size_t size = 0; size < whole.size(); size += 17) {
      *text = whole.substr(0, size);
      ASSERT_EQ(run.outcome(), 'o') << path << " cut to " << size;
    }
    *text = whole;
  }
}

/// Runs everything inline, unless it is told to throw.
class FailingExecutor final : public Executor {
 public:
  std::int32_t workers() const noexcept override { return 2; }
  void run(std::int64_t items, FunctionRef<void(const WorkItem&)> body) override {
    ++calls;
    if (calls_until_failure > 0 && calls_until_failure.fetch_sub(1) == 1)
      throw std::runtime_error("no threads today");
    for (std::int64_t i = 0; i < items; ++i) body({i, -1, 0});
  }
  std::atomic<std::int64_t> calls_until_failure = 0, calls = 0;
};

Embedding failing_engine(const std::shared_ptr<FailingExecutor>& executor, std::int32_t hosts,
                         bool pipelined) {
  StrategyOptions strategy;
  strategy.hosts = hosts;
  strategy.replicas_per_host = 2 / hosts;
  strategy.executor = executor;
  strategy.timeout = std::chrono::seconds(60);
  EmbeddingOptions options;
  options.tuning.inline_floats = 0;
  options.tuning.bucket_bytes = 64;  // several items in each region
  options.pipeline_execution_with_tensor_core = pipelined;
  return Embedding(features(), adagrad(), make_strategy(strategy), options);
}

/// Looks up the next queued batch and applies gradients of ones, also where the update would wait
/// for the next lookup.
void step(Embedding& engine) {
  engine.apply_gradients(Gradients(engine.dequeue(), filled(1)).all());
  engine.digest();
}

/// Trains one step, after which `queued` such batches are queued. Returns how many regions an
/// update has; the last one changes rows.
std::int64_t regions_of_update(Embedding& engine, const FailingExecutor& executor, int queued) {
  const auto data = owned(2);
  for (int i = 0; i < 1 + queued; ++i) engine.enqueue(ragged_batches(data));
  const Activations activations = engine.dequeue();
  const std::int64_t before = executor.calls;
  engine.apply_gradients(Gradients(activations, filled(1)).all());
  engine.digest();
  return executor.calls - before;
}

TEST(RestoreFaults, GradientsMayBeGivenAgainAfterAnErrorBeforeRowsChange) {
  for (const std::int32_t hosts : {1, 2}) {
    Embedding sound = failing_engine(std::make_shared<FailingExecutor>(), hosts, false);
    const auto data = owned(2);
    for (int i = 0; i < 2; ++i) {
      sound.enqueue(ragged_batches(data));
      step(sound);
    }
    std::int64_t regions = 2 * hosts;
    for (std::int64_t call = 1; call <= regions - hosts; ++call) {  // the last ones change rows
      SCOPED_TRACE(std::to_string(hosts) + " hosts, call " + std::to_string(call));
      const auto executor = std::make_shared<FailingExecutor>();
      Embedding engine = failing_engine(executor, hosts, false);
      regions = regions_of_update(engine, *executor, 1);
      const Gradients gradients(engine.dequeue(), filled(1));
      const std::string before = engine.digest();
      executor->calls_until_failure = call;
      EXPECT_ANY_THROW(engine.apply_gradients(gradients.all()));
      EXPECT_EQ(engine.digest(), before);
      engine.apply_gradients(gradients.all());
      EXPECT_EQ(engine.digest(), sound.digest());
    }
    EXPECT_GE(regions, 2 * hosts);
  }
}

TEST(RestoreFaults, AWholeRestoreRunsNoPendingUpdate) {
  const SavedStep saved(2);
  const auto executor = std::make_shared<FailingExecutor>();
  Embedding engine = failing_engine(executor, 1, true);
  regions_of_update(engine, *executor, 1);
  engine.apply_gradients(Gradients(engine.dequeue(), filled(1)).all());
  const auto regions_of_restore = [&] {
    const std::int64_t before = executor->calls;
    engine.restore(saved.run());
    EXPECT_EQ(engine.digest(), saved.engine.digest());
    return executor->calls - before;
  };
  const std::int64_t while_pending = regions_of_restore();
  EXPECT_EQ(while_pending, regions_of_restore());
  EXPECT_EQ(engine.step(), 1);
}

TEST(RestoreFaults, AWholeRestoreGivesUpABatchWhoseUpdateCannotBePrepared) {
  const SavedStep saved(2);
  for (const std::int32_t hosts : {1, 2}) {
    const auto executor = std::make_shared<FailingExecutor>();
    Embedding engine = failing_engine(executor, hosts, false);
    regions_of_update(engine, *executor, 2);
    const Gradients gradients(engine.dequeue(), filled(1));
    for (int attempt = 0; attempt < 2; ++attempt) {
      executor->calls_until_failure = 1;
      EXPECT_ANY_THROW(engine.apply_gradients(gradients.all()));
    }
    EXPECT_THAT(refusal<StateError>([&] { engine.restore(saved.run(), {.tables = {"user"}}); }),
                HasSubstr("still lacks its gradients"));
    engine.restore(saved.run());
    EXPECT_EQ(engine.digest(), saved.engine.digest());
    step(engine);  // the batch that is queued
    EXPECT_EQ(engine.step(), 2);
    engine.enqueue(ragged_batches(owned(2)));
    engine.dequeue();
    EXPECT_THAT(refusal<StateError>([&] { engine.restore(saved.run()); }),
                HasSubstr("still lacks its gradients"));
  }
}

TEST(RestoreFaults, AWholeRestoreGivesUpNoBatchButTheOneWhoseUpdateCannotBePrepared) {
  const SavedStep saved(2);
  const auto executor = std::make_shared<FailingExecutor>();
  Embedding engine = failing_engine(executor, 1, false);
  regions_of_update(engine, *executor, 1);
  const Gradients gradients(engine.dequeue(), filled(1));
  LookupResult other = engine.look_up(ragged_batches(owned(2)));
  const Gradients of_other(other.activations, filled(1));
  executor->calls_until_failure = 1;
  EXPECT_ANY_THROW(engine.apply_gradients(std::move(other.token), of_other.all()));
  EXPECT_THAT(refusal<StateError>([&] { engine.restore(saved.run()); }),
              HasSubstr("still lacks its gradients"));
  engine.apply_gradients(gradients.all());
  engine.restore(saved.run());
  EXPECT_EQ(engine.digest(), saved.engine.digest());
}

TEST(RestoreFaults, AFailedEngineIsMendedByAWholeRestore) {
  const SavedStep saved(2);
  for (const bool pipelined : {false, true}) {
    const auto executor = std::make_shared<FailingExecutor>();
    Embedding engine = failing_engine(executor, 1, pipelined);
    const std::int64_t regions = regions_of_update(engine, *executor, 2);
    const Activations activations = engine.dequeue();
    executor->calls_until_failure = regions;
    const Gradients gradients(activations, filled(1));
    if (pipelined) {
      engine.apply_gradients(gradients.all());
      EXPECT_THROW(engine.digest(), std::runtime_error);
    } else {
      EXPECT_THROW(engine.apply_gradients(gradients.all()), std::runtime_error);
    }
    EXPECT_THAT(refusal<StateError>([&] { engine.dequeue(); }),
                HasSubstr("the engine failed in an earlier step: no threads today"));
    EXPECT_THAT(refusal<StateError>([&] { engine.restore(saved.run(), {.tables = {"user"}}); }),
                HasSubstr("Every variable must be restored"));
    engine.restore(saved.run());
    EXPECT_EQ(engine.digest(), saved.engine.digest());
    EXPECT_EQ(engine.step(), 1);
    EXPECT_THROW(engine.apply_gradients(gradients.all()),
                 StateError);  // the dequeued batch is gone
    engine.apply_gradients(Gradients(engine.dequeue(), filled(0)).all());  // the queued one is not
    engine.restore(saved.run());
    train_once(engine, 2);
    EXPECT_EQ(engine.step(), 2);
  }
}

TEST(RestoreFaults, HostsThatGaveUpMeetAgainAfterARestore) {
  SavedStep saved(2);
  const auto executor = std::make_shared<FailingExecutor>();
  Embedding engine = failing_engine(executor, 2, false);
  const std::int64_t regions = regions_of_update(engine, *executor, 1);
  const Gradients gradients(engine.dequeue(), filled(1));
  executor->calls_until_failure = regions;
  EXPECT_ANY_THROW(engine.apply_gradients(gradients.all()));
  EXPECT_THROW(engine.dequeue(), StateError);
  engine.restore(saved.run());
  EXPECT_THAT(refusal<StateError>([&] { engine.dequeue(); }),  // the batch that failed is gone
              HasSubstr("no batch is enqueued"));
  train_once(engine, 2);
  train_once(saved.engine, 2);
  EXPECT_EQ(engine.digest(), saved.engine.digest());
}

/// Makes the engine fail amid a restore.
void restore_half(Embedding& engine, const std::filesystem::path& run, FailingExecutor& executor) {
  std::string refused;
  for (int calls = 1; refused.find("half read") == std::string::npos; ++calls) {
    ASSERT_LT(calls, 50);
    executor.calls_until_failure = calls;
    refused = refusal<std::exception>([&] { engine.restore(run); });
  }
}

TEST(RestoreFaults, AnEngineWithoutHostsIsMendedByAWholeRestore) {
  const auto saved = trained(1);
  MemoryFiles files;
  save(*saved, files);
  Embedding plain(features(), adagrad(), nullptr, EmbeddingOptions());
  plain.build(2);
  const auto not_built = make_engine(1, features());
  restore(*not_built, files);
  for (Embedding* const engine : {&plain, not_built.get()}) {
    std::string refused;
    for (int operation = 0; refused.find("half read") == std::string::npos; ++operation) {
      ASSERT_LT(operation, 1000);
      files.fail_at(operation, MemoryFiles::Fault::kError);
      refused = refusal<std::exception>([&] { restore(*engine, files); });
    }
    files.heal();
    restore(*engine, files);
    EXPECT_EQ(engine->digest(), saved->digest());
  }
}

TEST(RestoreFaults, AQueuedBatchIsAskedForAnewAfterARestoreThatFailed) {
  SavedStep saved(2);
  const auto executor = std::make_shared<FailingExecutor>();
  Embedding engine = failing_engine(executor, 2, false);
  const auto data = owned(2);
  for (int i = 0; i < 3; ++i) engine.enqueue(ragged_batches(data));
  engine.apply_gradients(Gradients(engine.dequeue(), filled(1)).all());
  engine.apply_gradients(Gradients(engine.dequeue(), filled(1)).all());
  restore_half(engine, saved.run(), *executor);
  engine.restore(saved.run());
  engine.apply_gradients(Gradients(engine.dequeue(), filled(1)).all());
  saved.engine.enqueue(ragged_batches(data));
  saved.engine.apply_gradients(Gradients(saved.engine.dequeue(), filled(1)).all());
  EXPECT_EQ(engine.digest(), saved.engine.digest());
}

}  // namespace
}  // namespace embertable
