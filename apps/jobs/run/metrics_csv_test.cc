#include "apps/jobs/run/metrics_csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "embertable/errors.h"
#include "testing/temporary_files.h"

namespace embertable::jobs {
namespace {

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void start(MetricsCsv& csv, const std::string& part, std::int32_t resumed_epochs = -1,
           const std::vector<std::string>& metrics = {"auc", "logloss"}) {
  Job of;
  of.metrics = metrics;
  StartReport report{.job = of,
                     .threads = 1,
                     .training = 10,
                     .measured = 5,
                     .measured_part = part,
                     .ids = {},
                     .baselines = {},
                     .read_seconds = 0,
                     .resumed = {}};
  if (resumed_epochs >= 0) report.resumed = {"run", 0, resumed_epochs, 0, {}};
  csv.started(report);
}

void finish_epoch(MetricsCsv& csv, std::int32_t epoch, const Measures& validation) {
  csv.finished_epoch({.epoch = epoch,
                      .step = 4 * epoch,
                      .trained = 10 * epoch,
                      .learning_rate = 0.5,
                      .training = {"logloss", 1.0 / epoch},
                      .validation = validation,
                      .seconds = 0.25,
                      .samples_per_second = 40});
}

constexpr const char* kHeader =
    "epoch,step,samples,seconds,learning_rate,training_logloss,validation_auc,validation_logloss\n";

TEST(MetricsCsv, HasARowForEachEpochAtOnce) {
  const TemporaryFiles files;
  MetricsCsv csv(files.path("run.csv"));
  start(csv, "validation");
  EXPECT_EQ(content(files.path("run.csv")), "");
  finish_epoch(csv, 1, {{"auc", 0.75}, {"logloss", 0.5}});
  EXPECT_EQ(content(files.path("run.csv")), kHeader + std::string("1,4,10,0.25,0.5,1,0.75,0.5\n"));
  finish_epoch(csv, 2, {{"auc", 0.8}, {"logloss", 0.4}});
  csv.finished({.measures = {{"auc", 0.8}, {"logloss", 0.4}}, .measured_part = "validation"});
  EXPECT_EQ(content(files.path("run.csv")),
            kHeader + std::string("1,4,10,0.25,0.5,1,0.75,0.5\n2,8,20,0.25,0.5,0.5,0.8,0.4\n"));
}

TEST(MetricsCsv, TheTestPartHasTheLastRow) {
  const TemporaryFiles files;
  MetricsCsv csv(files.path("run.csv"));
  start(csv, "test");
  finish_epoch(csv, 1, {});
  csv.finished({.measures = {{"auc", 0.8}, {"logloss", 0.4}}, .measured_part = "test", .steps = 4});
  EXPECT_EQ(content(files.path("run.csv")),
            "epoch,step,samples,seconds,learning_rate,training_logloss,test_auc,test_logloss\n"
            "1,4,10,0.25,0.5,1,,\n"
            "1,4,10,,,,0.8,0.4\n");
}

TEST(MetricsCsv, AResumedRunGoesOnBehindTheEpochsThatItKeeps) {
  const TemporaryFiles files;
  {
    MetricsCsv csv(files.path("run.csv"));
    start(csv, "validation");
    finish_epoch(csv, 1, {{"auc", 0.75}, {"logloss", 0.5}});
    finish_epoch(csv, 2, {{"auc", 0.76}, {"logloss", 0.5}});
  }
  std::ofstream(files.path("run.csv"), std::ios::app) << "3,1";  // broken off
  MetricsCsv csv(files.path("run.csv"));
  start(csv, "validation", 1);
  finish_epoch(csv, 2, {{"auc", 0.8}, {"logloss", 0.4}});
  EXPECT_EQ(content(files.path("run.csv")),
            kHeader + std::string("1,4,10,0.25,0.5,1,0.75,0.5\n2,8,20,0.25,0.5,0.5,0.8,0.4\n"));
}

TEST(MetricsCsv, AResumedRunHasOneRowOfTheTestPart) {
  const TemporaryFiles files;
  const Measures test = {{"auc", 0.8}, {"logloss", 0.4}};
  {
    MetricsCsv csv(files.path("run.csv"));
    start(csv, "test");
    finish_epoch(csv, 1, {});
    csv.finished({.measures = test, .measured_part = "test", .steps = 4});
  }
  const std::string once = content(files.path("run.csv"));
  {
    MetricsCsv csv(files.path("run.csv"));
    start(csv, "test", 1);
    csv.finished({.measures = test, .measured_part = "test", .steps = 4});
  }
  EXPECT_EQ(content(files.path("run.csv")), once);
  MetricsCsv csv(files.path("run.csv"));
  start(csv, "test", 1);
  finish_epoch(csv, 2, {});
  csv.finished({.measures = test, .measured_part = "test", .steps = 8});
  EXPECT_EQ(content(files.path("run.csv")),
            "epoch,step,samples,seconds,learning_rate,training_logloss,test_auc,test_logloss\n"
            "1,4,10,0.25,0.5,1,,\n"
            "2,8,20,0.25,0.5,0.5,,\n"
            "2,8,20,,,,0.8,0.4\n");
}

TEST(MetricsCsv, AResumedRunKeepsTheOrderOfTheColumns) {
  const TemporaryFiles files;
  {
    MetricsCsv csv(files.path("run.csv"));
    start(csv, "validation");
    finish_epoch(csv, 1, {{"auc", 0.75}, {"logloss", 0.5}});
  }
  MetricsCsv csv(files.path("run.csv"));
  start(csv, "validation", 1, {"logloss", "auc"});
  finish_epoch(csv, 2, {{"logloss", 0.5}, {"auc", 0.8}});
  const std::string both = kHeader + std::string(
                                         "1,4,10,0.25,0.5,1,0.75,0.5\n"
                                         "2,8,20,0.25,0.5,0.5,0.8,0.5\n");
  EXPECT_EQ(content(files.path("run.csv")), both);
  MetricsCsv other(files.path("run.csv"));
  EXPECT_EQ(refusal<ValueError>(files.path(), [&] { start(other, "validation", 2, {"auc"}); }),
            "'run.csv': the columns of a file that goes on must be those of the job's metrics, "
            "validation_auc, got validation_auc, validation_logloss; take these metrics, or "
            "another file");
  EXPECT_EQ(content(files.path("run.csv")), both);
}

TEST(MetricsCsv, AResumedRunReplacesNoOtherFile) {
  const TemporaryFiles files;
  for (const char* text : {"one line", "one line\n", "epoch,steps",
                           "a,b,c,d,e,f,validation_auc,validation_logloss\n1\n"}) {
    files.write("run.csv", text);
    MetricsCsv csv(files.path("run.csv"));
    EXPECT_THAT(refusal<ValueError>(files.path(), [&] { start(csv, "validation", 1); }),
                testing::HasSubstr("'run.csv' must be a new file"));
    EXPECT_EQ(content(files.path("run.csv")), text);
  }
  for (const std::string text :
       {"", "epoch,st", "epoch,step,samples,seconds,learning_rate,train"}) {
    files.write("run.csv", text);  // what a run that was killed leaves
    MetricsCsv csv(files.path("run.csv"));
    start(csv, "validation", 1);
    finish_epoch(csv, 2, {{"auc", 0.8}, {"logloss", 0.4}});
    EXPECT_EQ(content(files.path("run.csv")),
              kHeader + std::string("2,8,20,0.25,0.5,0.5,0.8,0.4\n"));
  }
}

TEST(MetricsCsv, WhatHasNoMeasureIsEmpty) {
  const TemporaryFiles files;
  MetricsCsv csv(files.path("run.csv"));
  start(csv, "validation");
  finish_epoch(csv, 1, {{"auc", std::numeric_limits<double>::quiet_NaN()}, {"logloss", 0.5}});
  EXPECT_EQ(content(files.path("run.csv")), kHeader + std::string("1,4,10,0.25,0.5,1,,0.5\n"));
}

TEST(MetricsCsv, ANewRunBeginsANewFile) {
  const TemporaryFiles files;
  for (const std::string& old :
       {std::string(), kHeader + std::string("1,4,10,0.25,0.5,1,,0.5\n")}) {
    files.write("run.csv", old);
    MetricsCsv csv(files.path("run.csv"));
    start(csv, "validation");
    EXPECT_EQ(content(files.path("run.csv")), "");
  }
}

TEST(MetricsCsv, AFileOfSomethingElseStays) {
  const TemporaryFiles files;
  for (const std::string& old :
       {std::string("user,item,rating\n1,2,3\n"), std::string("epoch,step")}) {
    files.write("ratings.csv", old);
    MetricsCsv csv(files.path("ratings.csv"));
    EXPECT_EQ(
        refusal<ValueError>(files.path(), [&] { start(csv, "validation"); }),
        "'ratings.csv' must be a new file, an empty one or one that a run wrote, got one that "
        "does not begin with \"epoch,step,samples,seconds,learning_rate,\"");
    EXPECT_EQ(content(files.path("ratings.csv")), old);
  }
}

TEST(MetricsCsv, NamesTheFileThatItCannotWrite) {
  const TemporaryFiles files;
  MetricsCsv csv(files.path("none/run.csv"));
  EXPECT_EQ(refusal<IoError>(files.path(), [&] { start(csv, "test"); }),
            "'none/run.csv': cannot write: No such file or directory");
}

}  // namespace
}  // namespace embertable::jobs
