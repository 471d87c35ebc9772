// Rates that fall, and runs that end when they no longer improve.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <vector>

#include "apps/jobs/run/digest.h"
#include "apps/jobs/run/evaluate.h"
#include "embertable/checkpoint.h"
#include "embertable/errors.h"
#include "testing/tiny_job.h"
#include "testing/training_run.h"

namespace embertable::jobs {
namespace {

class RateWatch final : public TrainObserver {
 public:
  explicit RateWatch(std::int64_t steps_until_stop = -1) : left_(steps_until_stop) {}
  void stepped(const StepReport& step) override {
    rates.push_back(step.learning_rate);
    shares.push_back(step.share);
    if (--left_ == 0) stop = true;
  }
  void finished_epoch(const EpochReport& epoch) override {
    measures.push_back(epoch.validation.empty() ? 0 : epoch.validation.front().value);
    if (epoch.best) best = epoch.epoch;
  }
  std::vector<double> rates, shares, measures;
  std::int32_t best = 0;
  std::atomic<bool> stop = false;

 private:
  std::int64_t left_;
};

class Schedule : public testing::Test {
 protected:
  Schedule() { write_tiny_data(files_); }
  TrainReport run(const std::vector<Change>& changes, RateWatch& watch,
                  const std::string& out = "") {
    return train_in(files_, tiny_job(changes),
                    {.out = out,
                     .resume = !out.empty(),
                     .threads = 1,
                     .stop = [&] { return watch.stop.load(); }},
                    watch);
  }
  TemporaryFiles files_;

  /// Learns, then overfits: validation is best somewhere in between.
  const std::vector<Change> overfitting_ = {
      "split.train_on_validation=false", "schedule.epochs=60", "schedule.patience=3",
      "optimizer.learning_rate=0.15",    "optimizer.decay=1",  "model.regularization=0"};
};

TEST_F(Schedule, ALinearRateFallsToNothingOverTheRun) {
  RateWatch watch;
  run({"schedule.rate=linear", "optimizer.decay=1", "schedule.epochs=3"}, watch);
  const auto steps = static_cast<double>(watch.rates.size());
  for (std::size_t i = 0; i + 1 < watch.rates.size(); ++i)
    EXPECT_GT(watch.rates[i], watch.rates[i + 1]);
  EXPECT_DOUBLE_EQ(watch.rates.front(), 0.05);
  EXPECT_LT(watch.rates.back(), 0.05 * 1.5 / steps);
  EXPECT_GT(watch.rates.back(), 0);
  EXPECT_DOUBLE_EQ(watch.shares.back(), 1);
}

TEST_F(Schedule, ALinearRateGoesOnWhereItWasBrokenOff) {
  const std::vector<Change> linear = {"schedule.rate=linear", "schedule.epochs=3"};
  RateWatch whole;
  const std::string digest = run(linear, whole).digest;
  const std::string out = files_.path("out");
  RateWatch first(11);
  EXPECT_TRUE(run(linear, first, out).interrupted);
  RateWatch rest;
  EXPECT_EQ(run(linear, rest, out).digest, digest);
  EXPECT_EQ(rest.rates.back(), whole.rates.back());
  RateWatch longer;
  EXPECT_THROW(run({"schedule.rate=linear", "schedule.epochs=4"}, longer, out), ValueError);
}

TEST_F(Schedule, ARunThatIsAskedToStopOnceEnds) {
  const std::vector<Change> ahead = {"schedule.look_ahead=1", "schedule.epochs=3"};
  RateWatch whole, first, rest;
  const std::string digest = run(ahead, whole).digest;
  const std::string out = files_.path("out");
  int asked = 0;
  const TrainReport report =
      train_in(files_, tiny_job(ahead),
               {.out = out, .threads = 1, .stop = [&] { return ++asked == 3; }}, first);
  EXPECT_TRUE(report.interrupted);
  EXPECT_EQ(asked, 3);
  EXPECT_EQ(report.steps, std::ssize(first.rates));
  EXPECT_LT(report.steps, 3);
  EXPECT_EQ(run(ahead, rest, out).digest, digest);
}

TEST_F(Schedule, AnEpochReportsTheRateOfItsFirstStep) {
  struct Rates final : TrainObserver {
    void stepped(const StepReport& step) override {
      if (step.epoch > std::ssize(first)) first.push_back(step.learning_rate);
    }
    void finished_epoch(const EpochReport& epoch) override { told.push_back(epoch.learning_rate); }
    std::vector<double> first, told;
  } watch;
  train_in(files_, tiny_job({"schedule.rate=linear", "schedule.epochs=4"}), {.threads = 1}, watch);
  EXPECT_EQ(watch.told, watch.first);
  EXPECT_LT(watch.told[3], watch.told[0] / 3);
}

TEST_F(Schedule, ARunThatDivergesStopsAtItsFirstStep) {
  RateWatch watch;
  EXPECT_EQ(refusal<ValueError>("", [&] { run({"optimizer.learning_rate=1e30"}, watch); }),
            "the run diverges: the loss must be finite, got nan in step 2, of epoch 1; a lower "
            "optimizer.learning_rate or schedule.batch may help");
  EXPECT_EQ(watch.rates.size(), 1u);
}

TEST_F(Schedule, ARunThatDivergesInItsLastStepHasNoMeasure) {
  RateWatch watch;
  EXPECT_EQ(
      refusal<ValueError>(
          "",
          [&] {
            run({"optimizer.learning_rate=1e38", "schedule.batch=200", "schedule.epochs=1"}, watch);
          })
          .substr(0, 43),
      "the run diverges: test rmse must be a numbe");
}

TEST_F(Schedule, PatienceNeedsSamplesToMeasure) {
  RateWatch watch;
  files_.write("test.csv", "user,item,rating\n100,7,1\n");
  std::vector<Change> none = overfitting_;
  for (const char* change : {"split.test_file=test.csv", "split.validation=0"})
    none.push_back(change);
  EXPECT_EQ(refusal<ValueError>("", [&] { run(none, watch); }),
            "schedule.patience must be 0 where the validation part has no samples, got 3");
}

TEST_F(Schedule, NamesAreReadBeforeTheFirstEpochAlone) {
  struct NoNames final : TrainObserver {
    explicit NoNames(const TemporaryFiles& files) : files_(files) {}
    void started(const StartReport&) override { std::filesystem::remove(files_.path("names.csv")); }
    void finished_epoch(const EpochReport& epoch) override { best += epoch.best; }
    const TemporaryFiles& files_;
    int best = 0;
  };
  for (const std::string out : {"", "out"}) {
    write_tiny_data(files_);
    NoNames watch(files_);
    train_in(files_, tiny_job(overfitting_),
             {.out = out.empty() ? "" : files_.path(out), .threads = 1}, watch);
    EXPECT_GT(watch.best, 1) << out;
  }
}

TEST_F(Schedule, ARunEndsWhenItNoLongerImproves) {
  RateWatch watch;
  const TrainReport report = run(overfitting_, watch);
  const auto epochs = static_cast<std::int32_t>(watch.measures.size());
  ASSERT_LT(epochs, 60);
  const auto best = std::min_element(watch.measures.begin(), watch.measures.end());
  EXPECT_EQ(watch.best, best - watch.measures.begin() + 1);
  EXPECT_EQ(report.best_epoch, watch.best);
  EXPECT_EQ(epochs, watch.best + 3);
  EXPECT_EQ(report.measures.front().value, *best);
}

TEST_F(Schedule, TheBestEpochIsKeptBesideTheRun) {
  const std::string out = files_.path("out");
  RateWatch watch;
  const TrainReport report = run(overfitting_, watch, out);
  EXPECT_EQ(report.saved.parent_path(), std::filesystem::path(out) / "best");
  EXPECT_EQ(saved_digest(out + "/best"), report.digest);
  EXPECT_NE(saved_digest(out), report.digest);
  const Evaluation evaluation = evaluate(out + "/best", {.data_root = files_.path(), .threads = 1});
  EXPECT_EQ(evaluation.measures.front().value, report.measures.front().value);
}

TEST_F(Schedule, ABrokenOffRunFindsTheSameBestEpoch) {
  RateWatch whole;
  const std::string digest = run(overfitting_, whole).digest;
  const std::string out = files_.path("out");
  bool interrupted = true;
  std::int32_t parts = 0;
  while (interrupted) {
    RateWatch part(9);
    const TrainReport report = run(overfitting_, part, out);
    interrupted = report.interrupted;
    ++parts;
    if (!interrupted) {
      EXPECT_EQ(report.digest, digest);
      EXPECT_EQ(report.best_epoch, whole.best);
    }
  }
  EXPECT_GT(parts, 2);
}

TEST_F(Schedule, ARunThatBrokeOffBeforeItsFirstSaveBeginsAnew) {
  const std::string out = files_.path("out");
  std::vector<Change> other = overfitting_;
  other.push_back("optimizer.learning_rate=0.12");
  RateWatch first;
  run(other, first, out);
  for (const auto& entry : std::filesystem::directory_iterator(out)) {
    if (entry.path().filename().string().starts_with("step_"))
      std::filesystem::remove_all(entry.path());
  }
  RateWatch whole, again;
  const std::string digest = run(overfitting_, whole).digest;
  EXPECT_EQ(run(overfitting_, again, out).digest, digest);
}

TEST_F(Schedule, ABestEpochIsNoMiddleOfAnEpoch) {
  const std::string out = files_.path("out");
  std::vector<Change> pipelined = overfitting_;
  for (const char* change :
       {"schedule.pipelined=true", "checkpoint.every=2", "optimizer.learning_rate=0.08"})
    pipelined.push_back(change);
  RateWatch watch;
  run(pipelined, watch, out);
  for (const auto& [name, tensor] : read_saved_state(out + "/best").caller.tensors)
    EXPECT_FALSE(name.starts_with("looked_up.")) << name;
}

TEST_F(Schedule, WhatIsWatchedStaysWhereTheRunWaitsForIt) {
  const std::string out = files_.path("out");
  RateWatch first(9), rest;
  run(overfitting_, first, out);
  std::vector<Change> other = overfitting_;
  other.push_back("metrics=[\"mae\", \"rmse\"]");
  EXPECT_EQ(refusal<ValueError>(files_.path(), [&] { run(other, rest, out); }).substr(0, 16),
            "metrics must be ");
}

TEST_F(Schedule, PatienceNeedsAValidationPart) {
  EXPECT_EQ(refusal<ValueError>("", [&] { tiny_job({"schedule.patience=2"}); }),
            "schedule.patience=2: schedule.patience must be 0 where the validation part "
            "trains, got 2");
}

}  // namespace
}  // namespace embertable::jobs
