#include "apps/jobs/run/evaluate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "apps/jobs/data/data_set.h"
#include "apps/jobs/run/describe.h"
#include "embertable/errors.h"
#include "embertable/variables/variable_checkpoint.h"
#include "testing/tiny_job.h"
#include "testing/training_run.h"

namespace embertable::jobs {
namespace {

class Evaluate : public testing::Test {
 protected:
  Evaluate() { write_tiny_data(files_); }
  TrainReport run(const std::vector<Change>& changes = {}) {
    return train_in(files_, tiny_job(changes), {.out = files_.path("out")});
  }
  Evaluation evaluated(std::optional<Part> part = {}, std::int32_t threads = 1) {
    return evaluate(files_.path("out"),
                    {.data_root = files_.path(), .threads = threads, .part = part});
  }
  TemporaryFiles files_;
};

TEST_F(Evaluate, GivesTheFiguresOfTheRun) {
  const TrainReport report = run({"strategy.hosts=2", "strategy.replicas=4"});
  const Evaluation evaluation = evaluated({}, 2);
  EXPECT_EQ(evaluation.part, Part::kTest);
  EXPECT_EQ(value_of(evaluation.measures, "rmse"), value_of(report.measures, "rmse"));
  EXPECT_EQ(value_of(evaluation.measures, "mae"), value_of(report.measures, "mae"));
  EXPECT_EQ(evaluation.step, report.steps);
  EXPECT_EQ(evaluation.directory, report.saved);
}

TEST_F(Evaluate, MeasuresTheValidationPartIfTheRunDid) {
  const TrainReport report = run({"split.train_on_validation=false"});
  EXPECT_EQ(evaluated().part, Part::kValidation);
  EXPECT_EQ(value_of(evaluated().measures, "rmse"), value_of(report.measures, "rmse"));
}

TEST_F(Evaluate, MeasuresAnyPart) {
  run();
  const DataSet data = read_data(tiny_records(), {.root = files_.path()});
  for (const Part part : {Part::kTest, Part::kValidation, Part::kTraining}) {
    const Evaluation evaluation = evaluated(part);
    EXPECT_EQ(evaluation.part, part);
    EXPECT_EQ(evaluation.samples, data.select({part}).size());
    EXPECT_GT(value_of(evaluation.measures, "rmse"), 0);
  }
  EXPECT_NE(value_of(evaluated(Part::kTest).measures, "rmse"),
            value_of(evaluated(Part::kTraining).measures, "rmse"));
}

TEST_F(Evaluate, RefusesOtherDataOfTheSameSizeAndTime) {
  const TrainReport report = run();
  EXPECT_EQ(value_of(evaluated().measures, "rmse"), value_of(report.measures, "rmse"));
  const std::filesystem::path tags = files_.path("tags.csv");
  const auto written = std::filesystem::last_write_time(tags);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // a clock of files may be coarse
  files_.write("tags.csv", std::string(std::filesystem::file_size(tags), 'x'));
  std::filesystem::last_write_time(tags, written);
  EXPECT_THROW(evaluated(), ValueError);
}

TEST_F(Evaluate, MakesNoCache) {
  run();
  std::filesystem::remove_all(files_.path("out.cache"));
  evaluated();
  EXPECT_FALSE(std::filesystem::exists(files_.path("out.cache")));
}

TEST_F(Evaluate, RefusesOtherData) {
  run();
  files_.write("tags.csv", "item;tags\n7;t0\n");
  EXPECT_THAT(refusal<ValueError>(files_.path(), [&] { evaluated(); }),
              testing::StartsWith("the data must be those that 'out/step_"));
}

TEST_F(Evaluate, NeedsASavedRun) { EXPECT_THROW(evaluated(), IoError); }

TEST_F(Evaluate, WhatItMeasuresCanBeDescribed) {
  const TrainReport report = run({"optimizer.rule=adagrad"});
  const Description description = describe_checkpoint(files_.path("out"));
  const Json& all = description.own;
  EXPECT_EQ(all["directory"], report.saved.string());
  EXPECT_EQ(all["step"], report.steps);
  ASSERT_EQ(all["tables"].size(), 5u);
  for (const auto& table : all["tables"]) {
    if (table["name"] != "item") continue;
    EXPECT_EQ(table["rows"], 10);
    ASSERT_EQ(table["variables"].size(), 2u);
    EXPECT_EQ(table["variables"][1]["name"], "item/accumulators");
    EXPECT_EQ(table["variables"][1]["bytes"], 10 * 5 * 4);
  }
  std::int64_t bytes = 0;
  for (const auto& file : all["files"]) bytes += file["bytes"].get<std::int64_t>();
  EXPECT_EQ(all["bytes"], bytes);
  EXPECT_EQ(all["id_maps"].size(), 3u);
  std::vector<std::string> tensors;
  for (const auto& tensor : all["tensors"]) tensors.push_back(tensor["name"]);
  EXPECT_THAT(tensors, testing::UnorderedElementsAre("known.ids", "known.splits", "lists.tag.ids",
                                                     "lists.tag.splits", "mean", "vectors.item"));
  EXPECT_EQ(all["blobs"].size(), 2u);
  const Json both = Json::parse(description.text());
  EXPECT_EQ(both["user"]["progress"]["epochs"], 2);
  EXPECT_EQ(both["bytes"], bytes);
}

TEST_F(Evaluate, AnyJsonOfACallerCanBeDescribed) {
  std::int64_t step = 0;
  const auto user = [&](const std::string& json) {
    const CheckpointRun run(files_.path("variables"));
    save_variables(run, ++step, {}, {.json = json, .tensors = {}, .blobs = {}});
    const Description description = describe_checkpoint(files_.path("variables"));
    EXPECT_TRUE(description.text().ends_with(",\"user\":" + description.user + "}"));
    return description.user;
  };
  EXPECT_EQ(user(R"( { "b" : [1, 2.50], "a" : "x y" } )"), R"({"b":[1,2.5],"a":"x y"})");
  EXPECT_EQ(user(R"( { "a" : 1 , "a" : "x \" y" } )"), R"({"a":1,"a":"x \" y"})");
  for (const int depth : {33, 500'000}) {
    const std::string deep = std::string(depth, '[') + std::string(depth, ']');
    EXPECT_TRUE(user(" " + deep) == deep) << depth;
  }
}

}  // namespace
}  // namespace embertable::jobs
