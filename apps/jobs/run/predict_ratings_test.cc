// What a model of ratings says of new pairs.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "apps/convert/export_tables.h"
#include "apps/jobs/math/metrics.h"
#include "apps/jobs/run/progress.h"
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

TEST_F(PredictRatings, GivesTheBitsThatEvalMeasuresOfInt8Too) {
  run(tiny_job({"schedule.epochs=20", "tables.user.row_type=bfloat16"}));
  const double trained = value_of(measured(), "rmse");
  export_tables(
      {.format = TableFormat::kInt8, .from = files_.path("out"), .out = files_.path("int8")},
      [](const ConvertedArray&) {});
  std::filesystem::rename(files_.path("out"), files_.path("trained"));
  std::filesystem::rename(files_.path("int8"), files_.path("out"));
  const double rmse = value_of(measured(), "rmse");
  RatingMetrics metrics(1, 5);
  metrics.add(scores("tests.csv").numbers("prediction"), labels_);
  EXPECT_EQ(metrics.rmse(), rmse);
  EXPECT_NE(rmse, trained);
  EXPECT_NEAR(rmse, trained, 0.01);
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

TEST_F(PredictRatings, UsesTheStepThatWasCheckedWhateverStandsInItsPlaceLater) {
  run(tiny_job());
  const Scores before = scores("tests.csv");
  const SavedRun saved = read_saved_run(files_.path("out"));
  train_in(files_, tiny_job({"optimizer.learning_rate=0.2"}), {.out = files_.path("other")});
  const std::filesystem::path other = find_checkpoint(files_.path("other"));
  std::filesystem::remove_all(saved.directory);
  std::filesystem::rename(other, saved.directory);
  ASSERT_NE(scores("tests.csv").lines, before.lines);
  const auto predictor =
      saved.job.model->make_predictor(saved.parts(), {.path = files_.path("tests.csv")});
  Scores found;
  while (predictor->next(*make_inline_executor(), found)) {
  }
  EXPECT_EQ(found.lines, before.lines);
}

TEST_F(PredictRatings, NeedsASavedRun) {
  EXPECT_THROW(scores("tests.csv"), IoError);
  run(tiny_job());
  const CallerState lists = ServingEmbedding::open(files_.path("out")).caller_state();
  EXPECT_TRUE(lists.tensors.contains("lists.tag.splits"));
}

TEST_F(PredictRatings, CopiesTheIdsAndOtherColumnsBesideTheScores) {
  run(tiny_job());
  files_.write("new.csv", "shelf,item,user,rating\n\"a,b\",10,103,\n,0100,7,\n");
  Scores found = scores("new.csv", {.copy_ids = true, .copy = {"shelf", "item"}});
  EXPECT_THAT(found.columns, ElementsAre("line", "item", "user", "shelf", "prediction", "unseen"));
  ASSERT_EQ(found.lines.size(), 2u);
  EXPECT_EQ(found.lines[0][1], "10");
  EXPECT_EQ(found.lines[0][2], "103");
  EXPECT_EQ(found.lines[0][3], "a,b");
  EXPECT_EQ(found.lines[1][1], "100");  // the key, a whole number
  EXPECT_EQ(found.lines[1][3], "");
  found = scores("new.csv", {.copy = {"1"}});
  EXPECT_THAT(found.columns, ElementsAre("line", "shelf", "prediction", "unseen"));
  EXPECT_THAT(refused<ValueError>("new.csv", {.copy = {"shelv"}}),
              testing::HasSubstr("the nearest is 'shelf'"));
}

TEST_F(PredictRatings, AShareOfTheRowsMayBeBroken) {
  run(tiny_job());
  files_.write("new.csv", "user,item\n103,10\nx,10\n104,10\n105,10\n");
  Scores found;
  EXPECT_EQ(predicted("new.csv", found, {.skip_bad = SkipBad::parse("25%")}).counts.left_out, 1);
  EXPECT_EQ(found.lines.size(), 3u);
  EXPECT_THAT(
      refused<ValueError>("new.csv", {.skip_bad = SkipBad::parse("24%")}),
      testing::HasSubstr("new.csv:3:1: 'user' must be an integer of 64 bits, or any text with "
                         "keys = \"string\"; of 4 records 1 "
                         "are broken, more than 24%"));
}

/// The best items of a few users.
class RecommendRatings : public PredictRatings {
 protected:
  /// Returns user, rank, item of each line, and the scores.
  struct Line {
    std::string user, rank, item, name, score, basis;
  };
  std::vector<Line> lines(const std::string& rows, std::int64_t items) {
    files_.write("users.csv", rows);
    const Scores found = scores("users.csv", {.items = items});
    EXPECT_THAT(found.columns, ElementsAre("user", "rank", "item", "name", "score", "basis"));
    std::vector<Line> all;
    for (const std::vector<std::string>& line : found.lines)
      all.push_back({line[0], line[1], line[2], line[3], line[4], line[5]});
    return all;
  }
};

TEST_F(RecommendRatings, RankTheItemsThatAUserLacksByTheirPredictions) {
  run(tiny_job({"schedule.epochs=5", "data.range=[-50, 50]"}));
  // The items of user 103 in the test part are not trained on.
  std::string pairs = "user,item\n";
  std::vector<int> lacked;
  for (int i = 0; i < 10; ++i) {
    if (split_part(pair_key(103, 7 + 3 * i)) != Part::kTest) continue;
    pairs += fmt::format("103,{}\n", 7 + 3 * i);
    lacked.push_back(7 + 3 * i);
  }
  ASSERT_GE(lacked.size(), 2u);
  files_.write("pairs.csv", pairs);
  const std::vector<float> predictions = scores("pairs.csv").numbers("prediction");
  std::vector<std::size_t> order(lacked.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return predictions[a] > predictions[b]; });
  const std::vector<Line> found = lines("user\n103\n", 10);
  ASSERT_EQ(found.size(), lacked.size());
  for (std::size_t k = 0; k < order.size(); ++k) {
    EXPECT_EQ(found[k].user, "103");
    EXPECT_EQ(found[k].rank, std::to_string(k + 1));
    EXPECT_EQ(found[k].item, std::to_string(lacked[order[k]]));
    EXPECT_EQ(found[k].name, fmt::format("Item, No. {}", (lacked[order[k]] - 7) / 3));
    EXPECT_NEAR(std::stof(found[k].score), predictions[order[k]], 1e-5);
    EXPECT_EQ(found[k].basis, "user");
  }
  EXPECT_EQ(lines("user\n103\n", 1).size(), 1u);
}

TEST_F(RecommendRatings, LeaveOutWhatTheRowsSayTheUserHas) {
  run(tiny_job());
  const std::vector<Line> all = lines("user\n9\n103\n", 10);
  ASSERT_GT(all.size(), 11u);
  EXPECT_EQ(all[0].user, "9");  // an unseen user lacks all items
  EXPECT_EQ(all[9].basis, "item");
  EXPECT_EQ(all[10].user, "103");
  const std::vector<Line> fewer =
      lines("item,user\n" + all[0].item + ",9\n" + all[2].item + ",9\n8,9\n,103\n", 10);
  EXPECT_EQ(fewer.size(), all.size() - 2);
  EXPECT_EQ(fewer[0].item, all[1].item);
  EXPECT_EQ(fewer[1].item, all[3].item);
}

TEST_F(RecommendRatings, TakeSpellingsOfAnIntegerForOneUser) {
  run(tiny_job());
  const std::vector<Line> all = lines("user\n9\n", 10);
  const std::vector<Line> fewer = lines(
      "user,item\n09," + all[0].item + "\n9,0" + all[1].item + "\n009," + all[2].item + "\n", 10);
  ASSERT_EQ(fewer.size(), all.size() - 3);
  for (std::size_t k = 0; k < fewer.size(); ++k) {
    EXPECT_EQ(fewer[k].user, "9");
    EXPECT_EQ(fewer[k].item, all[k + 3].item);
  }
}

TEST_F(RecommendRatings, AnUnseenUserGetsTheItemsOfTheHighestBias) {
  run(tiny_job());
  double mean = 0;
  const CallerState state = ServingEmbedding::open(files_.path("out")).caller_state();
  std::memcpy(&mean, state.tensors.at("mean").bytes.data(), sizeof(mean));
  float most = -1e9f;
  for (int row = 0; row < 10; ++row) most = std::max(most, saved_row("item_bias", row));
  EXPECT_FLOAT_EQ(std::stof(lines("user\n9\n", 3)[0].score), static_cast<float>(mean) + most);
}

TEST_F(RecommendRatings, ItemsThatCannotBeRankedAreRefused) {
  run(tiny_job());
  EXPECT_THAT(refused<ValueError>("tests.csv", {.items = 0}),
              testing::HasSubstr("must be 1 to 10000, got 0"));
  EXPECT_THAT(refused<ValueError>("tests.csv", {.items = 2, .copy = {"user"}}),
              testing::HasSubstr("copy must be of scores of records"));
  files_.write("new.csv", "item\n7\n");
  EXPECT_THAT(refused<ValueError>("new.csv", {.items = 2}), testing::HasSubstr("'user'"));
}

TEST_F(RecommendRatings, HashedItemsHaveNoKeysToGive) {
  run(parse_job(R"(
[data]
file = "ratings.csv.gz"
label = "rating"
range = [1, 5]
[ids.user]
column = "user"
[ids.item]
column = "item"
hash = 5
[model]
kind = "mf"
[schedule]
epochs = 1
)",
                "hashed.toml"));
  EXPECT_EQ(refused<ValueError>("tests.csv", {.items = 2}),
            "ids.item must have keys for its items to be ranked: hashed and rare ones have none");
}

}  // namespace
}  // namespace embertable::jobs
