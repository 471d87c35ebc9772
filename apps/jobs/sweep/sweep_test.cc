// Jobs trained with many settings.
#include "apps/jobs/sweep/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <system_error>

#include "apps/jobs/run/digest.h"
#include "embertable/errors.h"
#include "testing/no_threads.h"
#include "testing/tiny_job.h"
#include "testing/training_run.h"

namespace embertable::jobs {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

std::string refused_key(const std::string& text) {
  return refusal<ValueError>("", [&] { SweptKey::parse(text); });
}

TEST(SweptKey, HasValuesOrARange) {
  EXPECT_THAT(SweptKey::parse("model.dim=16,32").values, ElementsAre("16", "32"));
  EXPECT_THAT(SweptKey::parse("model.hidden=[64, 32],[128],[]").values,
              ElementsAre("[64, 32]", "[128]", "[]"));
  EXPECT_THAT(SweptKey::parse("data.where.a=\"is x,y\",'filled'").values,
              ElementsAre("\"is x,y\"", "'filled'"));
  EXPECT_THAT(SweptKey::parse(R"(a="x\",y","z\\",'\',"")").values,
              ElementsAre(R"("x\",y")", R"("z\\")", R"('\')", R"("")"));
  const SweptKey rate = SweptKey::parse("optimizer.learning_rate=0.001..0.1");
  EXPECT_EQ(rate.range->low, 0.001);
  EXPECT_EQ(rate.range->high, 0.1);
  EXPECT_FALSE(rate.range->integers);
  EXPECT_TRUE(SweptKey::parse("model.dim=8..64").range->integers);
  EXPECT_THAT(SweptKey::parse("data.file=../a.csv,../b.csv").values,
              ElementsAre("../a.csv", "../b.csv"));
}

TEST(SweptKey, SaysWhichRuleIsBroken) {
  for (const char* text : {"model.dim", "=1", "model.dim="})
    EXPECT_THAT(refused_key(text), HasSubstr("must be KEY=VALUE,VALUE or KEY=LOW..HIGH"));
  EXPECT_THAT(refused_key("a=1,,2"), HasSubstr("a: values must be different and not empty"));
  EXPECT_THAT(refused_key("a=1,1"), HasSubstr("a: values must be different"));
  EXPECT_EQ(refused_key("a=2..1"), "a: a range must rise, got 2..1");
  EXPECT_EQ(refused_key("a=1..99999999999999999999"),
            "a: whole numbers of a range must be between -2^63 and 2^63, got "
            "1..99999999999999999999");
}

TEST(Grid, HasEveryCombinationOnce) {
  const std::vector<SweepSetting> all =
      grid_of({SweptKey::parse("a=1,2"), SweptKey::parse("b=x,y,z")});
  ASSERT_THAT(all, SizeIs(6));
  EXPECT_THAT(all[0], ElementsAre(Pair("a", "1"), Pair("b", "x")));
  EXPECT_THAT(all[1], ElementsAre(Pair("a", "1"), Pair("b", "y")));
  EXPECT_THAT(all[5], ElementsAre(Pair("a", "2"), Pair("b", "z")));
  EXPECT_EQ(refusal<ValueError>("", [] { grid_of({SweptKey::parse("a=1..2")}); }),
            "a: a grid must have values, got a range; a random sweep draws from it");
  EXPECT_EQ(refusal<ValueError>("",
                                [] {
                                  grid_of({SweptKey::parse("a=1"), SweptKey::parse("a=2")});
                                }),
            "a sweep must name each key once, got 'a' twice");
}

TEST(RandomSettings, AreDifferentAndDependOnTheSeedAlone) {
  const std::vector<SweptKey> keys = {SweptKey::parse("a=1,2,3,4,5"), SweptKey::parse("b=1,2,3,4")};
  const std::vector<SweepSetting> some = random_settings(keys, 12, 7);
  EXPECT_THAT(some, SizeIs(12));
  EXPECT_THAT(std::set<SweepSetting>(some.begin(), some.end()), SizeIs(12));
  EXPECT_EQ(random_settings(keys, 12, 7), some);
  EXPECT_NE(random_settings(keys, 12, 8), some);
  EXPECT_EQ(random_settings(keys, 20, 7), grid_of(keys));
  EXPECT_EQ(random_settings(keys, 21, 7), grid_of(keys));
}

TEST(RandomSettings, AreEvenOnALogarithmicScale) {
  const std::vector<SweepSetting> rates =
      random_settings({SweptKey::parse("rate=0.001..0.1")}, 400, 1);
  int below = 0;
  for (const SweepSetting& one : rates) {
    const double value = std::stod(one[0].second);
    EXPECT_THAT(value, AllOf(testing::Ge(0.001), testing::Le(0.1)));
    below += value < 0.01;
  }
  EXPECT_NEAR(below, 200, 40);  // 4 standard deviations
  std::set<std::string> dims;
  for (const SweepSetting& one : random_settings({SweptKey::parse("dim=4..7")}, 4, 1))
    dims.insert(one[0].second);
  EXPECT_THAT(dims, ElementsAre("4", "5", "6", "7"));
  for (const SweepSetting& one : random_settings({SweptKey::parse("x=-1.5..0.5")}, 50, 1))
    EXPECT_THAT(std::stod(one[0].second), AllOf(testing::Ge(-1.5), testing::Le(0.5)));
}

TEST(RandomSettings, StayInANarrowRange) {
  std::set<double> rates;
  for (const SweepSetting& one :
       random_settings({SweptKey::parse("rate=0.012346..0.012349")}, 50, 1))
    rates.insert(std::stod(one[0].second));
  EXPECT_THAT(rates, SizeIs(50));
  EXPECT_GE(*rates.begin(), 0.012346);
  EXPECT_LE(*rates.rbegin(), 0.012349);
  for (const SweepSetting& one : random_settings({SweptKey::parse("x=0.10004..0.9")}, 200, 1))
    EXPECT_GE(std::stod(one[0].second), 0.10004);
}

struct SweepWatch : SweepObserver {
  void started(const Job&, std::int64_t all, std::int64_t before) override {
    runs = all;
    finished = before;
  }
  void chose(std::int64_t at_once, std::int32_t threads) override {
    side_by_side = {at_once, threads};
  }
  void ran(const SweptRun& run) override {
    ran_.push_back(run);
    if (std::ssize(ran_) == stop_after) stop = true;
  }
  std::int64_t runs = 0, finished = 0;
  std::pair<std::int64_t, std::int32_t> side_by_side;
  std::vector<SweptRun> ran_;
  std::int64_t stop_after = -1;
  bool stop = false;
};

class Sweep : public testing::Test {
 protected:
  Sweep() { write_tiny_data(files_); }
  SweepReport run(const std::vector<std::string>& keys, SweepOptions options, SweepWatch& watch) {
    std::vector<SweptKey> swept;
    for (const std::string& key : keys) swept.push_back(SweptKey::parse(key));
    options.data_root = files_.path();
    options.out = files_.path("sweep");
    options.stop = [&] { return watch.stop; };
    return sweep([](const std::vector<Change>& changes) { return tiny_job(changes); },
                 grid_of(swept), options, watch);
  }
  SweepReport run(const std::vector<std::string>& keys, const SweepOptions& options = {}) {
    SweepWatch silent;
    return run(keys, options, silent);
  }
  std::int64_t files_in(const std::string& folder) const {
    return std::distance(fs::directory_iterator(files_.path(folder)), fs::directory_iterator());
  }
  TrainReport alone(const std::vector<Change>& changes) {
    return train_in(files_, tiny_job(changes), {.threads = 1});
  }
  TemporaryFiles files_;
};

TEST_F(Sweep, RanksByTheValidationPartAndTestsTheBestOnce) {
  SweepWatch watch;
  const SweepReport report =
      run({"optimizer.learning_rate=0.0001,0.1", "schedule.batch=24,48"}, {.threads = 3}, watch);
  EXPECT_EQ(watch.runs, 4);
  ASSERT_THAT(report.runs, SizeIs(4));
  EXPECT_THAT(watch.side_by_side, Pair(3, 1));
  for (std::size_t i = 0; i + 1 < report.runs.size(); ++i)
    EXPECT_LE(report.runs[i].measures[0].value, report.runs[i + 1].measures[0].value);
  for (const SweptRun& one : report.runs) {
    std::vector<Change> changes = {"split.train_on_validation=false"};
    for (const auto& [key, value] : one.setting) changes.push_back(key + "=" + value);
    const TrainReport mine = alone(changes);
    EXPECT_EQ(mine.digest, one.digest);
    EXPECT_EQ(mine.measures[0].value, one.measures[0].value);
    EXPECT_EQ(one.epoch, 2);
  }
  std::vector<Change> best;
  for (const auto& [key, value] : report.runs[0].setting) best.push_back(key + "=" + value);
  const TrainReport tested = alone(best);  // tiny_job trains on the validation part
  EXPECT_EQ(report.best->measured_part, "test");
  EXPECT_EQ(report.best->digest, tested.digest);
  EXPECT_EQ(report.best->measures[0].value, tested.measures[0].value);
  EXPECT_EQ(saved_digest(files_.path("sweep/best")), tested.digest);
  EXPECT_EQ(files_in("sweep/runs"), 0);
}

TEST_F(Sweep, ABestEpochIsTheLengthOfTheSecondRun) {
  const SweepReport report =
      run({"optimizer.learning_rate=0.15", "optimizer.decay=1", "model.regularization=0",
           "schedule.epochs=60", "schedule.patience=3"});
  const std::int32_t epoch = report.runs[0].epoch;
  EXPECT_LT(epoch, 57);
  const TrainReport tested =
      alone({"optimizer.learning_rate=0.15", "optimizer.decay=1", "model.regularization=0",
             "schedule.epochs=" + std::to_string(epoch)});
  EXPECT_EQ(report.best->digest, tested.digest);
}

TEST_F(Sweep, GoesOnWhereItWasInterruptedAndTrainsNothingTwice) {
  const std::vector<std::string> keys = {"seed=1,2,3,4,5"};
  SweepWatch first;
  first.stop_after = 2;
  const SweepReport interrupted = run(keys, {.threads = 2, .runs_at_once = 1}, first);
  EXPECT_TRUE(interrupted.interrupted);
  EXPECT_FALSE(interrupted.best);
  EXPECT_THAT(refusal<ValueError>(files_.path(), [&] { run(keys); }),
              HasSubstr("which holds a sweep; resume goes on with it, overwrite removes it"));
  SweepWatch rest;
  const SweepReport report = run(keys, {.resume = true}, rest);
  EXPECT_GE(rest.finished, 2);
  EXPECT_LT(rest.finished, 5);
  ASSERT_THAT(report.runs, SizeIs(5));
  SweepWatch again;
  const SweepReport same = run(keys, {.resume = true}, again);
  EXPECT_EQ(again.finished, 5);
  EXPECT_EQ(same.best->digest, report.best->digest);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(same.runs[i].digest, report.runs[i].digest);
  SweepWatch more;
  run({"seed=1,2,3,4,5,6"}, {.resume = true}, more);
  EXPECT_EQ(more.finished, 5);
  EXPECT_EQ(more.runs, 6);
  SweepWatch anew;
  run(keys, {.overwrite = true}, anew);
  EXPECT_EQ(anew.finished, 0);
}

TEST_F(Sweep, OtherDataAreTrainedAnew) {
  run({"seed=1,2"});
  fs::last_write_time(files_.path("tags.csv"),
                      fs::last_write_time(files_.path("tags.csv")) + std::chrono::seconds(5));
  SweepWatch watch;
  run({"seed=1,2"}, {.resume = true}, watch);
  EXPECT_EQ(watch.finished, 0);
}

TEST_F(Sweep, SettingsThatMeanTheSameAreTrainedOnce) {
  SweepWatch watch;
  const SweepReport report =
      run({"optimizer.learning_rate=0.1,0.10,1e-1,0.05", "seed=1"}, {.threads = 2}, watch);
  EXPECT_EQ(watch.runs, 2);
  ASSERT_THAT(report.runs, SizeIs(2));
  EXPECT_NE(report.runs[0].id, report.runs[1].id);
  SweepWatch again;
  run({"optimizer.learning_rate=0.05,0.10", "seed=1"}, {.resume = true}, again);
  EXPECT_EQ(again.finished, 2);
}

TEST_F(Sweep, AStampStandsForTheDataFiles) {
  run({"seed=1,2"}, {.data_stamp = "a"});
  fs::last_write_time(files_.path("tags.csv"),
                      fs::last_write_time(files_.path("tags.csv")) + std::chrono::seconds(5));
  SweepWatch same, other;
  run({"seed=1,2"}, {.resume = true, .data_stamp = "a"}, same);
  EXPECT_EQ(same.finished, 2);
  run({"seed=1,2"}, {.resume = true, .data_stamp = "b"}, other);
  EXPECT_EQ(other.finished, 0);
}

TEST_F(Sweep, ATornLineOfResultsIsTrainedAgain) {
  const SweepReport first = run({"seed=1,2"});
  const std::string path = files_.path("sweep/runs.jsonl");
  fs::resize_file(path, fs::file_size(path) - 10);
  SweepWatch watch;
  const SweepReport second = run({"seed=1,2"}, {.resume = true}, watch);
  EXPECT_EQ(watch.finished, 1);
  EXPECT_EQ(second.runs[0].digest, first.runs[0].digest);
  EXPECT_EQ(second.runs[1].digest, first.runs[1].digest);
}

TEST_F(Sweep, ARunThatDivergesIsLastAndSaysWhy) {
  const SweepReport report = run({"optimizer.learning_rate=1e30,0.05"}, {.keep_runs = true});
  ASSERT_THAT(report.runs, SizeIs(2));
  EXPECT_EQ(report.runs[0].setting[0].second, "0.05");
  EXPECT_THAT(report.runs[1].error, HasSubstr("the run diverges"));
  EXPECT_THAT(report.runs[1].measures, IsEmpty());
  EXPECT_TRUE(report.best);
  EXPECT_EQ(files_in("sweep/runs"), 2);
  EXPECT_THAT(
      refusal<ValueError>("", [&] { run({"optimizer.learning_rate=1e30"}, {.overwrite = true}); }),
      HasSubstr("no run of the sweep has a measure: the run diverges"));
}

TEST_F(Sweep, ARunHasTheWarningsOfItsTraining) {
  const std::vector<std::string> keys = {"optimizer.rule='lamb','sgd'"};
  SweepWatch watch, again;
  run(keys, {.tests_best = false}, watch);
  run(keys, {.resume = true, .tests_best = false}, again);
  for (const SweepWatch* seen : {&watch, &again}) {
    ASSERT_THAT(seen->ran_, SizeIs(2));
    for (const SweptRun& one : seen->ran_) {
      if (one.setting[0].second == "'sgd'") {
        EXPECT_THAT(one.warnings, IsEmpty());
      } else {
        EXPECT_THAT(one.warnings, SizeIs(2));  // both tables of biases
        EXPECT_THAT(one.warnings, testing::Each(HasSubstr("never moves a row of zeros")));
      }
    }
  }
}

TEST_F(Sweep, SettingsThatAreNoJobsAreRefusedBeforeAnyIsTrained) {
  EXPECT_THAT(refusal<ValueError>("", [&] { run({"schedule.batch=24,0"}); }),
              HasSubstr("schedule.batch must be an integer from 1"));
  EXPECT_FALSE(fs::exists(files_.path("sweep/runs.jsonl")));
  files_.write("sweep/other.txt", "mine");
  EXPECT_THAT(refusal<ValueError>(files_.path(), [&] { run({"seed=1"}, {.overwrite = true}); }),
              HasSubstr("or that of a sweep, got 'sweep' with 'other.txt'"));
}

TEST_F(Sweep, RunsAreRankedByOneMetric) {
  EXPECT_EQ(refusal<ValueError>("",
                                [&] {
                                  run({"seed=1,2", R"(metrics=["rmse","mae"],["mae"])"});
                                }),
            "the first metric, by which runs are ranked, must be rmse in all settings as in the "
            "first, got mae in seed=1, metrics=[\"mae\"]; set metrics in the job instead");
  EXPECT_FALSE(fs::exists(files_.path("sweep/runs.jsonl")));
  EXPECT_THAT(run({R"(metrics=["rmse","mae"],["rmse"])"}).runs, SizeIs(2));
}

TEST_F(Sweep, ASweepIsOverwrittenOnceTheNewOneCanStart) {
  run({"seed=1,2"});
  const auto keeps = [&](const std::vector<std::string>& keys) {
    EXPECT_ANY_THROW(run(keys, {.overwrite = true}));
    SweepWatch watch;
    run({"seed=1,2"}, {.resume = true}, watch);
    return watch.finished == 2 && fs::exists(files_.path("sweep/best"));
  };
  EXPECT_TRUE(keeps({"schedule.batch=24,0"}));
  EXPECT_TRUE(keeps({"data.label=stars", "seed=1,2"}));
  EXPECT_EQ(
      refusal<IoError>(files_.path(), [&] { run({"data.file='none.csv'"}, {.overwrite = true}); }),
      "'none.csv': cannot open: No such file or directory");
  run({"seed=1,2"}, {.overwrite = true, .keep_runs = true});
  EXPECT_EQ(files_in("sweep/runs"), 2);
  SweepWatch watch;
  const SweepReport report =
      run({"seed=2,3"}, {.overwrite = true, .keep_runs = true, .tests_best = false}, watch);
  EXPECT_EQ(watch.finished, 0);
  EXPECT_EQ(files_in("sweep/runs"), 2);
  EXPECT_FALSE(fs::exists(files_.path("sweep/best")));
  SweepWatch again;
  EXPECT_EQ(run({"seed=2,3"}, {.resume = true}, again).runs[0].digest, report.runs[0].digest);
  for (const fs::directory_entry& one : fs::directory_iterator(files_.path("sweep/runs"))) {
    fs::remove_all(one.path());  // killed after a best epoch, before a save
    fs::create_directories(one.path() / "best");
  }
  for (const SweptRun& one : run({"seed=2,3"}, {.overwrite = true, .tests_best = false}).runs)
    EXPECT_EQ(one.error, "");
  EXPECT_EQ(again.finished, 2);
}

TEST_F(Sweep, WhereAThreadCannotBeStartedTheResultsSoFarStay) {
  struct NoneAfterTwoRuns final : SweepWatch {
    void ran(const SweptRun& run) override {
      SweepWatch::ran(run);
      if (ran_.size() == 2) no_more.emplace();  // one run still trains
    }
    std::optional<NoThreads> no_more;
  };
  {
    NoneAfterTwoRuns watch;
    EXPECT_THROW(run({"schedule.epochs=1,1000000,2,3"}, {.threads = 2, .runs_at_once = 2}, watch),
                 std::system_error);
    EXPECT_THAT(watch.ran_, SizeIs(2));
  }
  SweepWatch watch;
  run({"schedule.epochs=1,2,3"}, {.resume = true, .threads = 2}, watch);
  EXPECT_EQ(watch.finished, 2);
}

TEST_F(Sweep, TestsNothingUnlessItShall) {
  const SweepReport report = run({"seed=1,2"}, {.tests_best = false});
  EXPECT_FALSE(report.best);
  EXPECT_FALSE(fs::exists(files_.path("sweep/best")));
}

}  // namespace
}  // namespace embertable::jobs
