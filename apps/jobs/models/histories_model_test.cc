#include "apps/jobs/models/histories_model.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "apps/convert/saved_model.h"
#include "apps/jobs/run/evaluate.h"
#include "apps/jobs/run/neighbors.h"
#include "embertable/errors.h"
#include "kernels/level.h"
#include "testing/executor.h"
#include "testing/tiny_histories.h"
#include "testing/training_run.h"

namespace embertable::jobs {
namespace {

/// A kind that learns from users' items, with a tiny job and the digest that it has always had.
struct Kind {
  const char* name;
  const char* job;
  const char* digest;
};

class HistoriesModel : public testing::TestWithParam<Kind> {
 protected:
  HistoriesModel() { write_tiny_histories(files_); }

  /// Four replicas, work cut small.
  Job job(std::vector<Change> changes = {}) const {
    changes.insert(changes.begin(),
                   {"strategy.replicas=4", "engine.bucket_bytes=64", "engine.inline_floats=0"});
    return parse_job(GetParam().job, "tiny.toml", changes);
  }
  TrainReport run(const std::vector<Change>& changes, const TrainOptions& options) const {
    return train_in(files_, job(changes), options);
  }
  std::string digest(const std::vector<Change>& changes = {}, std::int32_t threads = 2) const {
    return run(changes, {.threads = threads}).digest;
  }
  TemporaryFiles files_;
};

TEST_P(HistoriesModel, ThreadsHostsAndHowWorkIsCutDoNotShow) {
  const TrainReport expected = run({}, {.threads = 1});
  for (const std::int32_t threads : {2, 3, 7}) {
    const TrainReport report = run({}, {.threads = threads});
    EXPECT_EQ(report.digest, expected.digest) << threads;
    for (const Measure& measure : expected.measures)
      EXPECT_EQ(value_of(report.measures, measure.name), measure.value) << threads;
  }
  for (const std::string hosts : {"1", "2", "4"}) {
    EXPECT_EQ(digest({"strategy.hosts=" + hosts}), expected.digest) << hosts;
    EXPECT_EQ(digest({"strategy.hosts=" + hosts, "strategy.sharding=mod"}), expected.digest);
  }
  EXPECT_EQ(digest({"engine.bucket_bytes=0", "engine.inline_floats=8192"}), expected.digest);
  for (const std::string ahead : {"0", "1", "5"})
    EXPECT_EQ(digest({"schedule.look_ahead=" + ahead}), expected.digest) << ahead;
}

TEST_P(HistoriesModel, LevelsAndTheOrderOfReadyWorkDoNotShow) {
  const std::string expected = digest();
  for (const SimdLevel level : usable_levels()) {
    setenv("EMBERTABLE_SIMD", std::string(to_string(level)).c_str(), 1);
    EXPECT_EQ(digest(), expected) << to_string(level);
  }
  unsetenv("EMBERTABLE_SIMD");
  EXPECT_EQ(run({}, {.executor = std::make_shared<TestExecutor>(test_seed(), 5)}).digest, expected);
}

TEST_P(HistoriesModel, IsTheSameAsEver) { EXPECT_EQ(digest(), GetParam().digest); }

TEST_P(HistoriesModel, TheSeedShows) { EXPECT_NE(digest({"seed=2"}), digest({"seed=1"})); }

TEST_P(HistoriesModel, GoesOnAfterAnyStep) {
  const TrainReport expected = run({"schedule.epochs=2"}, {.threads = 1});
  for (int after = 1; after < expected.steps; ++after) {
    const std::string out = files_.path("run" + std::to_string(after));
    StopAfter stop(after);
    const Job two = job({"schedule.epochs=2"});
    const TrainOptions options{
        .out = out, .resume = true, .threads = 2, .stop = [&] { return stop.now.load(); }};
    EXPECT_TRUE(train_in(files_, two, options, stop).interrupted);
    const TrainReport report = train_in(files_, two, {.out = out, .resume = true, .threads = 1});
    EXPECT_EQ(report.digest, expected.digest) << after;
  }
}

TEST_P(HistoriesModel, IsMeasuredAgainAsItWas) {
  const std::string out = files_.path("run");
  const TrainReport report = run({}, {.out = out, .threads = 2});
  const Evaluation again = evaluate(out, {.data_root = files_.path(), .threads = 1});
  for (const Measure& measure : report.measures)
    EXPECT_EQ(value_of(again.measures, measure.name), measure.value);
  for (const Part part : {Part::kTraining, Part::kValidation}) {
    const Evaluation other = evaluate(out, {.data_root = files_.path(), .part = part});
    EXPECT_GT(other.samples, 0);
    for (const Measure& measure : other.measures) EXPECT_GT(measure.value, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, HistoriesModel,
    testing::Values(Kind{"Pairwise", kTinyPairs, "c0615f756dceb20dd2a0d69ac39b8051"},
                    Kind{"NextItem", kTinyChains, "0363662473e56c248b433ceb1c52dfe6"}),
    [](const auto& kind) { return std::string(kind.param.name); });

std::string refused(const char* text, const std::vector<Change>& changes) {
  return refusal<ValueError>("", [&] { parse_job(text, "a.toml", changes); });
}

TEST(HistoriesSpec, SaysWhichKeyBreaksWhichRule) {
  EXPECT_EQ(refused(kTinyPairs, {"split.rule=first"}),
            "split.rule=first: split.rule must be one of pairs, last, got \"first\"");
  EXPECT_EQ(refused(kTinyPairs, {"ids.user.keys=string", "split.rule=pairs"}),
            "split.rule=pairs: split.rule must be \"last\" where the keys of users or items "
            "are strings, "
            "got \"pairs\"");
}

}  // namespace
}  // namespace embertable::jobs
