#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "checkpoint/manifest.h"
#include "checkpoint/reader.h"
#include "checkpoint/run_directory.h"
#include "embertable/checkpoint.h"
#include "embertable/embedding.h"
#include "embertable/errors.h"
#include "testing/sanitized.h"
#include "testing/tiny_job.h"
#include "testing/training_run.h"

namespace embertable::jobs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Stops a run after some steps, and keeps what it reports.
class Watch final : public TrainObserver {
 public:
  explicit Watch(int stop_after = -1) : left_(stop_after) {}
  void started(const StartReport& start) override {
    resumed = start.resumed;
    warnings = start.warnings;
  }
  void stepped(const StepReport& step) override {
    ++steps;
    rmse.push_back(step.training.value);
    if (--left_ == 0) stop = true;
  }
  void finished_epoch(const EpochReport& epoch) override {
    epochs.push_back({static_cast<double>(epoch.epoch), epoch.learning_rate, epoch.training.value,
                      epoch.validation.empty() ? 0 : epoch.validation.front().value});
  }
  void saved(const SaveReport& report) override { saves.push_back(report.step); }

  std::atomic<bool> stop = false;
  int steps = 0;
  std::vector<double> rmse;                 ///< after each step
  std::vector<std::vector<double>> epochs;  ///< number, rate, training and validation error
  std::vector<std::int64_t> saves;
  std::optional<StartReport::Resumed> resumed;
  std::vector<std::string> warnings;

 private:
  int left_;
};

class Resume : public testing::Test {
 protected:
  Resume() { write_tiny_data(files_); }

  /// A run in the directory of a name, resumed if something is there.
  TrainReport run(const std::string& out, Watch& watch, const std::vector<Change>& changes = {},
                  std::int32_t threads = 1) {
    return train_in(files_, tiny_job(changes),
                    {.out = files_.path(out),
                     .resume = true,
                     .threads = threads,
                     .stop = [&] { return watch.stop.load(); }},
                    watch);
  }
  TrainReport run(const std::string& out, const std::vector<Change>& changes = {}) {
    Watch watch;
    return run(out, watch, changes);
  }
  std::string refused(const std::string& out, const std::vector<Change>& changes = {}) {
    return refusal<ValueError>(files_.path(), [&] { run(out, changes); });
  }
  /// Names in the directory that do not start with a dot.
  std::vector<std::string> names(const std::string& out) const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(files_.path(out))) {
      if (const std::string name = entry.path().filename(); name[0] != '.') found.push_back(name);
    }
    std::sort(found.begin(), found.end());
    return found;
  }
  TemporaryFiles files_;
};

/// The reports of `whole` from the one on that `part` starts with.
template <class T>
std::vector<T> last_of(const std::vector<T>& whole, const std::vector<T>& part) {
  return {whole.end() - static_cast<std::ptrdiff_t>(part.size()), whole.end()};
}

TEST_F(Resume, AfterAnyStepGivesTheSameRun) {
  for (const std::string pipelined : {"false", "true"}) {
    for (const std::string validate : {"false", "true"}) {
      const std::vector<Change> job = {"schedule.pipelined=" + pipelined,
                                       "split.train_on_validation=" + validate,
                                       "optimizer.rule=adagrad"};
      Watch whole;
      const std::string name = pipelined + validate;
      const TrainReport expected = run("whole" + name, whole, job);
      ASSERT_GT(whole.steps, 12);
      for (int stop = 1; stop <= whole.steps; stop += kSanitized ? 5 : 1) {
        SCOPED_TRACE(name + " stopped after step " + std::to_string(stop));
        const std::string out = name + std::to_string(stop);
        Watch first(stop), rest;
        const TrainReport interrupted = run(out, first, job);
        EXPECT_TRUE(interrupted.interrupted);
        EXPECT_EQ(interrupted.steps, stop);
        EXPECT_EQ(read_saved_state(interrupted.saved).step, stop);
        const TrainReport report = run(out, rest, job);
        EXPECT_EQ(first.steps + rest.steps, whole.steps);
        EXPECT_EQ(report.digest, expected.digest);
        EXPECT_EQ(value_of(report.measures, "rmse"), value_of(expected.measures, "rmse"));
        EXPECT_EQ(value_of(report.measures, "mae"), value_of(expected.measures, "mae"));
        EXPECT_EQ(rest.rmse, last_of(whole.rmse, rest.rmse));
        EXPECT_EQ(rest.epochs, last_of(whole.epochs, rest.epochs));
        EXPECT_EQ(first.epochs.size() + rest.epochs.size(), 2u);
        EXPECT_EQ(digest_checkpoint(files_.path(out)), expected.digest);
      }
    }
  }
}

TEST_F(Resume, AfterEveryStepGivesTheSameRun) {
  for (const std::string pipelined : {"schedule.pipelined=false", "schedule.pipelined=true"}) {
    const std::string expected = run("whole" + pipelined, {pipelined}).digest;
    int sittings = 0;
    for (TrainReport report{.interrupted = true}; report.interrupted; ++sittings) {
      Watch watch(1);
      report = run(pipelined, watch, {pipelined});
      EXPECT_LE(watch.steps, 1);
      EXPECT_EQ(report.digest, report.interrupted ? "" : expected);
    }
    EXPECT_GT(sittings, 12);
  }
}

TEST_F(Resume, OfARunOfOtherNumericsSaysSo) {
  Watch first(3), same(1), other;
  run("out", first);
  const std::filesystem::path step = run("out", same).saved;
  EXPECT_THAT(same.warnings, IsEmpty());
  checkpoint::Manifest manifest = checkpoint::Reader(checkpoint::local_files(), step).manifest();
  manifest.numerics_version = 1;
  std::ofstream(step / "manifest.json", std::ios::binary) << to_text(manifest);
  run("out", other);
  EXPECT_THAT(other.warnings, ElementsAre(HasSubstr("is of numerics version 1, this library of")));
}

TEST_F(Resume, MayHaveOtherHostsThreadsAndLookAhead) {
  for (const std::string pipelined : {"schedule.pipelined=false", "schedule.pipelined=true"}) {
    const std::vector<Change> job = {pipelined, "strategy.replicas=4", "engine.inline_floats=0"};
    const std::string expected = run("whole" + pipelined, job).digest;
    const auto with = [&](const std::vector<Change>& more) {
      std::vector<Change> changes = job;
      changes.insert(changes.end(), more.begin(), more.end());
      return changes;
    };
    Watch first(3), second(4), third(5), last;
    run(pipelined, first, with({"strategy.hosts=4"}), 2);
    run(pipelined, second, with({"schedule.look_ahead=0", "engine.bucket_bytes=64"}));
    run(pipelined, third,
        with({"strategy.hosts=2", "strategy.sharding=mod", "tables.item.replicated=true"}), 3);
    const TrainReport report = run(pipelined, last, with({"schedule.look_ahead=5"}), 2);
    ASSERT_TRUE(last.resumed);
    EXPECT_EQ(last.resumed->step, 12);
    EXPECT_EQ(report.digest, expected);
  }
}

TEST_F(Resume, PipelinedIsAnotherRun) {
  EXPECT_NE(run("plain").digest, run("pipelined", {"schedule.pipelined=true"}).digest);
}

TEST_F(Resume, SaysWhereItGoesOn) {
  Watch first(10), rest;
  run("out", first);
  EXPECT_FALSE(first.resumed);
  run("out", rest);
  ASSERT_TRUE(rest.resumed);
  EXPECT_EQ(rest.resumed->step, 10);
  EXPECT_EQ(rest.resumed->epochs, 1);
  const int per_epoch = static_cast<int>(first.steps + rest.steps) / 2;
  EXPECT_EQ(rest.resumed->samples, (10 - per_epoch) * 24);
  EXPECT_EQ(rest.resumed->directory.filename(), "step_000000000010");
}

TEST_F(Resume, OfAFinishedRunMeasuresItAgain) {
  const TrainReport expected = run("out");
  Watch watch;
  const TrainReport report = run("out", watch);
  EXPECT_EQ(watch.steps, 0);
  EXPECT_EQ(report.digest, expected.digest);
  EXPECT_EQ(value_of(report.measures, "rmse"), value_of(expected.measures, "rmse"));
  EXPECT_EQ(report.steps, expected.steps);
  EXPECT_EQ(report.saved, expected.saved);
  EXPECT_EQ(report.seconds, expected.seconds);
}

TEST_F(Resume, MayTrainMoreEpochs) {
  const std::string expected = run("whole", {"schedule.epochs=4"}).digest;
  run("out", {"schedule.epochs=2"});
  EXPECT_EQ(run("out", {"schedule.epochs=4"}).digest, expected);
  EXPECT_EQ(refused("out", {"schedule.epochs=3"}),
            "schedule.epochs must be at least 4, which the run that 'out/" + names("out").back() +
                "' holds has begun, got 3");
}

TEST_F(Resume, ARunThatDivergesKeepsWhatItSavedBefore) {
  const std::vector<Change> job = {"optimizer.learning_rate=1e30", "checkpoint.every=1"};
  Watch whole, rest;
  EXPECT_THROW(run("out", whole, job), ValueError);
  EXPECT_EQ(CheckpointRun(files_.path("out")).steps(), std::vector<std::int64_t>{1});
  EXPECT_THROW(run("out", rest, job), ValueError);
  EXPECT_EQ(rest.resumed->step, 1);
}

TEST_F(Resume, NamesTheKeyThatWasChanged) {
  Watch first(9), rest;
  run("out", first);
  EXPECT_EQ(
      refusal<ValueError>(files_.path(),
                          [&] {
                            run("out", rest, {"schedule.rate=linear", "schedule.epochs=5"});
                          }),
      "schedule.rate must be 'constant' as in the run that 'out/step_000000000009' holds, got "
      "'linear'");
}

TEST_F(Resume, StartsAnewWhereNothingIsSaved) {
  const std::string expected = run("whole").digest;
  std::filesystem::create_directories(files_.path("out/.step_000000000001_tmp-1"));
  Watch watch;
  EXPECT_EQ(run("out", watch).digest, expected);
  EXPECT_FALSE(watch.resumed);
  EXPECT_FALSE(std::filesystem::exists(files_.path("out/.step_000000000001_tmp-1")));
}

TEST_F(Resume, SkipsAStepThatCannotBeOpenedAndSaysSo) {
  const std::string expected = run("whole").digest;
  Watch first(10), rest;
  const TrainReport interrupted = run("out", first, {"checkpoint.every=1", "checkpoint.keep=3"});
  std::ofstream(interrupted.saved / "manifest.json", std::ios::trunc) << "{";
  EXPECT_EQ(run("out", rest, {"checkpoint.every=1"}).digest, expected);
  ASSERT_TRUE(rest.resumed);
  EXPECT_EQ(rest.resumed->step, 9);
  ASSERT_EQ(rest.resumed->skipped.size(), 1u);
  EXPECT_THAT(rest.resumed->skipped[0], HasSubstr("step_000000000010/manifest.json"));
  EXPECT_THAT(names("out"), testing::Contains("damaged-step_000000000010"));
}

TEST_F(Resume, SavesWhenTheJobSays) {
  Watch by_epoch, by_steps, at_end;
  const std::int64_t steps = run("epoch", by_epoch).steps;
  EXPECT_THAT(by_epoch.saves, ElementsAre(steps / 2, steps));
  run("steps", by_steps, {"checkpoint.every=5", "checkpoint.keep=0"});
  EXPECT_THAT(by_steps.saves, ElementsAre(5, 10, 15, steps));
  EXPECT_EQ(names("steps").size(), 4u);
  run("end", at_end, {"checkpoint.every=end"});
  EXPECT_THAT(at_end.saves, ElementsAre(steps));
}

TEST_F(Resume, KeepsTheNewestSteps) {
  run("one", {"checkpoint.every=3", "checkpoint.keep=1"});
  EXPECT_EQ(names("one").size(), 1u);
  run("two", {"checkpoint.every=3"});
  EXPECT_EQ(names("two").size(), 2u);
  EXPECT_EQ(digest_checkpoint(files_.path("two")), digest_checkpoint(files_.path("one")));
}

TEST_F(Resume, RefusesAnotherJob) {
  Watch first(3);
  run("out", first);
  const std::string held = "as in the run that 'out/step_000000000003' holds, got ";
  EXPECT_EQ(refused("out", {"optimizer.learning_rate=0.06"}),
            "optimizer.learning_rate must be '0.05' " + held + "'0.06'");
  EXPECT_EQ(refused("out", {"tables.tag.combiner=sum"}),
            "tables.tag.combiner must be 'mean' " + held + "'sum'");
  EXPECT_EQ(refused("out", {"split.salt=1"}), "split.salt must be '0' " + held + "'1'");
  EXPECT_EQ(refused("out", {"strategy.replicas=2"}),
            "strategy.replicas must be '1' " + held + "'2'");
  EXPECT_EQ(refused("out", {"optimizer.rule=adagrad", "optimizer.initial_accumulator_value=1"}),
            "optimizer.initial_accumulator_value must be nothing " + held + "'1'");
  EXPECT_THAT(refused("out", {"schedule.epochs=0"}), HasSubstr("must be at least 1"));
}

TEST_F(Resume, RefusesOtherData) {
  Watch first(3);
  run("out", first);
  const std::string refused_data =
      "the data must be those that 'out/step_000000000003' was trained on, got others: ";
  files_.write("tags.csv", "item;tags\n7;t0\n");
  EXPECT_EQ(refused("out"), refused_data + "ids tag differ");
  write_tiny_data(files_);
  files_.write_compressed("ratings.csv.gz", "user,item,rating\n100,7,1\n100,10,2\n101,7,3\n");
  EXPECT_EQ(refused("out"), refused_data + "ids item differ");
}

TEST_F(Resume, OverwritesARunOnceTheNewOneHasItsData) {
  const std::string out = files_.path("out");
  Watch watch;
  const Job patient = tiny_job({"schedule.patience=3", "split.train_on_validation=false"});
  train_in(files_, patient, {.out = out}, watch);
  files_.write("out/notes.txt", "mine");
  const std::vector<std::int64_t> steps = CheckpointRun(out).steps();
  const Job broken = tiny_job({"data.label=stars"});
  EXPECT_THAT(
      refusal<ValueError>(
          files_.path(), [&] { train_in(files_, broken, {.out = out, .overwrite = true}, watch); }),
      HasSubstr("stars"));
  struct Unwritable final : TrainObserver {
    void started(const StartReport&) override { throw IoError("no room for the report"); }
  } unwritable;
  EXPECT_THROW(train_in(files_, patient, {.out = out, .overwrite = true}, unwritable), IoError);
  EXPECT_EQ(CheckpointRun(out).steps(), steps);
  EXPECT_TRUE(std::filesystem::exists(out + "/best"));

  const Job shorter = tiny_job({"schedule.epochs=1"});
  const TrainReport again = train_in(files_, shorter, {.out = out, .overwrite = true}, watch);
  EXPECT_EQ(CheckpointRun(out).steps(), std::vector<std::int64_t>{again.steps});
  EXPECT_FALSE(std::filesystem::exists(out + "/best"));
  EXPECT_TRUE(std::filesystem::exists(out + "/notes.txt"));
  EXPECT_EQ(again.digest, train_in(files_, shorter, {}, watch).digest);
  EXPECT_EQ(refusal<ValueError>("",
                                [&] {
                                  train_in(files_, shorter,
                                           {.out = out, .resume = true, .overwrite = true}, watch);
                                }),
            "resume must be false where overwrite is true, got true");
}

TEST_F(Resume, OverwritesARunThatHasABestEpochAlone) {
  const std::string out = files_.path("out");
  Watch watch;
  const std::vector<Change> patient = {"schedule.patience=3", "split.train_on_validation=false"};
  train_in(files_, tiny_job(patient), {.out = out}, watch);
  for (const std::int64_t step : CheckpointRun(out).steps())
    std::filesystem::remove_all(files_.path("out/" + checkpoint::step_name(step)));
  files_.write("out/best/letter.txt", "dear");
  const Job job = tiny_job({"schedule.epochs=1"});
  EXPECT_EQ(
      refusal<ValueError>(files_.path(),
                          [&] { train_in(files_, job, {.out = out, .overwrite = true}, watch); }),
      "out must be a new or an empty directory, got 'out'");
  std::filesystem::remove(files_.path("out/best/letter.txt"));
  train_in(files_, job, {.out = out, .overwrite = true}, watch);
  EXPECT_FALSE(std::filesystem::exists(out + "/best"));
}

TEST_F(Resume, RefusesADirectoryThatIsNotItsOwn) {
  run("out");
  Watch watch;
  const std::string text = refusal<ValueError>(
      files_.path(), [&] { train_in(files_, tiny_job(), {.out = files_.path("out")}, watch); });
  EXPECT_THAT(text,
              testing::AllOf(testing::StartsWith("out must be a new or an empty directory, "
                                                 "got 'out', which holds a run up to step "),
                             testing::EndsWith("; resume goes on with it, overwrite removes it")));
  std::filesystem::create_directories(files_.path("other"));
  files_.write("other/letter.txt", "dear");
  EXPECT_EQ(refused("other"), "out must be a new or an empty directory, got 'other'");

  const Nested<FeatureConfig> features(
      FeatureConfig{.table = make_table({.vocabulary_size = 2, .dim = 1, .name = "t"})});
  Embedding plain(features, Optimizer("sgd", 1), nullptr);
  plain.build();
  plain.save(files_.path("tables"));
  EXPECT_THAT(refused("tables"), HasSubstr("must be what a run of train saved"));
  EXPECT_EQ(
      refusal<ValueError>(
          files_.path(),
          [&] { train_in(files_, tiny_job(), {.out = files_.path("tables")}, watch); }),
      "out must be a new or an empty directory, got 'tables', which holds tables up to step 0 "
      "that train did not save");
}

TEST_F(Resume, HoldsItsDirectoryAlone) {
  const CheckpointRun held(files_.path("out"));
  EXPECT_THROW(run("out"), StateError);
}

TEST_F(Resume, AnInterruptionWithoutDirectorySavesNothing) {
  Watch watch(3);
  const TrainReport report =
      train_in(files_, tiny_job(), {.stop = [&] { return watch.stop.load(); }}, watch);
  EXPECT_TRUE(report.interrupted);
  EXPECT_EQ(report.steps, 3);
  EXPECT_TRUE(report.saved.empty());
}

}  // namespace
}  // namespace embertable::jobs
