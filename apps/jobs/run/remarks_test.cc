#include "apps/jobs/run/remarks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace embertable::jobs {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Returns the remarks on a run with these validation measures, after each epoch and at the end.
std::vector<std::string> remarks(const std::string& metric, std::vector<double> validation,
                                 const std::vector<Baseline>& baselines, std::int32_t patience = 0,
                                 std::vector<double> training = {}) {
  training.resize(validation.size(), 1);
  Job job;
  job.metrics = {metric};
  job.schedule.patience = patience;
  Remarks remarks;
  remarks.started({.job = job,
                   .threads = 1,
                   .training = 10,
                   .measured = 5,
                   .measured_part = "validation",
                   .ids = {},
                   .baselines = baselines,
                   .read_seconds = 0,
                   .resumed = {}});
  for (std::size_t i = 0; i < validation.size(); ++i) {
    remarks.finished_epoch({.epoch = static_cast<std::int32_t>(i) + 1,
                            .step = 1,
                            .trained = 10,
                            .learning_rate = 0.1,
                            .training = {"loss", training[i]},
                            .validation = {{metric, validation[i]}},
                            .seconds = 1,
                            .samples_per_second = 10});
  }
  remarks.finished({.measures = {{metric, validation.back()}}});
  return remarks.sentences();
}

TEST(Remarks, AModelWorseThanABaselineIsToldTheBestOne) {
  const std::vector<Baseline> two = {{"mean", {{"rmse", 0.95}}}, {"bias", {{"rmse", 0.9}}}};
  EXPECT_THAT(
      remarks("rmse", {0.99}, two),
      ElementsAre("the model is worse than the baseline \"bias\": rmse 0.9900 against 0.9000"));
  EXPECT_THAT(
      remarks("rmse", {0.93}, two),
      ElementsAre("the model is worse than the baseline \"bias\": rmse 0.9300 against 0.9000"));
  EXPECT_THAT(remarks("rmse", {0.9}, two), IsEmpty());
  EXPECT_THAT(
      remarks("hr@10", {0.3}, {{"popularity", {{"hr@10", 0.5}}}}),
      ElementsAre(
          "the model is worse than the baseline \"popularity\": hr@10 0.3000 against 0.5000"));
}

TEST(Remarks, AModelThatOverfitsIsToldTheBestEpoch) {
  EXPECT_THAT(
      remarks("rmse", {0.8, 0.7, 0.75}, {}),
      ElementsAre("the model overfits: validation rmse was best after epoch 2, 0.7000, and is "
                  "0.7500 at the end; schedule.patience keeps the best epoch"));
  EXPECT_THAT(remarks("auc", {0.7, 0.6}, {}), testing::SizeIs(1));
}

TEST(Remarks, ATrainingThatGoesWrongIsToldItsBestEpoch) {
  EXPECT_THAT(remarks("rmse", {0.8, 0.8, 0.8}, {}, 0, {4.5, 4, 2e18}),
              ElementsAre("training goes wrong: its loss was lowest in epoch 2, 4, and is 2e+18 at "
                          "the end; a lower optimizer.learning_rate or schedule.batch makes the "
                          "steps of a row shorter"));
  EXPECT_THAT(remarks("rmse", {0.8, 0.8, 0.8}, {}, 0, {4.5, 4, 4.9}), IsEmpty());
}

TEST(Remarks, NothingIsSaidOfChanceNorOfARunThatKeepsItsBestEpoch) {
  EXPECT_THAT(remarks("rmse", {0.8, 0.7, 0.705}, {}), IsEmpty());
  EXPECT_THAT(remarks("rmse", {0.8, 0.7, 0.75}, {}, 3), IsEmpty());
  EXPECT_THAT(
      remarks("rmse", {std::numeric_limits<double>::quiet_NaN()}, {{"mean", {{"rmse", 1}}}}),
      IsEmpty());
}

}  // namespace
}  // namespace embertable::jobs
