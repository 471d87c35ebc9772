// What a model of ratings says of new pairs.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "apps/jobs/math/metrics.h"
#include "apps/jobs/spec/split.h"
#include "embertable/serving.h"
#include "testing/predicted_scores.h"
#include "testing/tiny_job.h"

namespace embertable::jobs {
namespace {

using testing::ElementsAre;

/// Ratings of tiny_job.h, whose part of the test is in "tests.csv".
class PredictRatings : public Predict {
 protected:
  PredictRatings() {
    write_tiny_data(files_);
    std::string tests = "item,user,rating\n";
    for (int u = 0; u < 20; ++u) {
      for (int i = 0; i < 10; ++i) {
        if (split_part(pair_key(100 + u, 7 + 3 * i)) != Part::kTest) continue;
        tests += fmt::format("{},{},\n", 7 + 3 * i, 100 + u);
        labels_.push_back(static_cast<float>(1 + (u + i) % 5));
      }
    }
    files_.write("tests.csv", tests);
  }

  float saved_row(const std::string& table, std::int64_t row) {
    float value = 0;
    ServingEmbedding::open(files_.path("out"))
        .read_rows(table, std::span<const std::int64_t>(&row, 1), std::span(&value, 1));
    return value;
  }

  std::vector<float> labels_;
};

TEST_F(PredictRatings, GivesTheBitsThatEvalMeasures) {
  run(tiny_job({"schedule.epochs=20"}));
  const Measures measures = measured();
  std::filesystem::remove(files_.path("ratings.csv.gz"));
  std::filesystem::remove(files_.path("tags.csv"));
  const Scores found = scores("tests.csv");
  EXPECT_THAT(found.columns, ElementsAre("line", "prediction", "unseen"));
  ASSERT_EQ(found.lines.size(), labels_.size());
  RatingMetrics metrics(1, 5);
  metrics.add(found.numbers("prediction"), labels_);
  EXPECT_EQ(metrics.rmse(), value_of(measures, "rmse"));
  EXPECT_EQ(metrics.mae(), value_of(measures, "mae"));
}

TEST_F(PredictRatings, UnseenUsersAndItemsHaveTheBiasesAlone) {
  run(tiny_job());
  files_.write("new.csv", "user,item\n7,10\n103,8\n7,8\n103,10\n");
  Scores found;
  const Prediction done = predicted("new.csv", found);
  double mean = 0;
  const CallerState state = ServingEmbedding::open(files_.path("out")).caller_state();
  std::memcpy(&mean, state.tensors.at("mean").bytes.data(), sizeof(mean));
  const std::vector<float> predictions = found.numbers("prediction");
  const auto start = static_cast<float>(mean);
  EXPECT_FLOAT_EQ(predictions[0], start + saved_row("item_bias", 1));
  EXPECT_FLOAT_EQ(predictions[1], start + saved_row("user_bias", 3));
  EXPECT_FLOAT_EQ(predictions[2], start);
  EXPECT_EQ(found.numbers("unseen"), (std::vector<float>{1, 1, 2, 0}));
  EXPECT_EQ(done.counts.with_unseen, 3);
  EXPECT_EQ(done.counts.unseen, (std::map<std::string, std::int64_t>{{"item", 2}, {"user", 2}}));
}

TEST_F(PredictRatings, PredictionsStayInTheRangeOfTheLabels) {
  // Products of such rows are far outside, and hardly trained.
  run(tiny_job({"tables.user.initializer.stddev=4", "tables.item.initializer.stddev=4",
                "optimizer.learning_rate=0.0001", "schedule.epochs=1"}));
  const std::vector<float> predictions = scores("tests.csv").numbers("prediction");
  EXPECT_THAT(predictions, testing::Each(testing::AllOf(testing::Ge(1), testing::Le(5))));
  EXPECT_THAT(predictions, testing::Contains(testing::AnyOf(1, 5)));
}

TEST_F(PredictRatings, NeedsASavedRun) {
  EXPECT_THROW(scores("tests.csv"), IoError);
  run(tiny_job());
  const CallerState lists = ServingEmbedding::open(files_.path("out")).caller_state();
  EXPECT_TRUE(lists.tensors.contains("lists.tag.splits"));
}

}  // namespace
}  // namespace embertable::jobs
