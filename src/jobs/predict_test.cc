#include "jobs/predict.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>

#include "base/random.h"
#include "embertable/errors.h"
#include "embertable/serving.h"
#include "jobs/evaluate.h"
#include "jobs/histories.h"
#include "jobs/histories_model.h"
#include "jobs/label_metrics.h"
#include "jobs/metrics.h"
#include "jobs/models/tiny_histories.h"
#include "jobs/ranking.h"
#include "jobs/split.h"
#include "jobs/tiny_job.h"
#include "jobs/train.h"

namespace embertable::jobs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Lines as texts, numbers so that they can be read back.
struct Scores : ScoreSink {
  void begin(const std::vector<std::string>& names) override { columns = names; }
  void line(std::span<const ScoreCell> cells) override {
    std::vector<std::string>& texts = lines.emplace_back();
    for (const ScoreCell& cell : cells)
      texts.push_back(std::visit([](const auto& value) { return fmt::format("{}", value); }, cell));
  }

  std::vector<float> numbers(const std::string& column) const {
    const auto at = std::find(columns.begin(), columns.end(), column) - columns.begin();
    std::vector<float> values;
    for (const std::vector<std::string>& line : lines)
      values.push_back(std::stof(line.at(static_cast<std::size_t>(at))));
    return values;
  }

  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> lines;
};

class Predict : public testing::Test {
 protected:
  TrainReport run(const Job& job) {
    TrainObserver silent;
    return train(job, {.data_root = files_.path(), .out = files_.path("out")}, silent);
  }
  Measures measured() {
    return evaluate(files_.path("out"), {.data_root = files_.path(), .threads = 1}).measures;
  }

  Prediction predicted(const std::string& file, Scores& scores, NewRows rows = {},
                       std::int32_t threads = 1) {
    rows.path = files_.path(file);
    return predict(files_.path("out"), {.rows = rows, .threads = threads}, scores);
  }
  Scores scores(const std::string& file, const NewRows& rows = {}, std::int32_t threads = 1) {
    Scores found;
    predicted(file, found, rows, threads);
    return found;
  }
  template <class Error>
  std::string refused(const std::string& file, const NewRows& rows = {}) {
    return refusal<Error>(files_.path(), [&] { scores(file, rows); });
  }

  TemporaryFiles files_;
};

/// Records with fields of all kinds: of several columns in one table, numbers that become buckets,
/// rare ones, missing ones, lists, hashed ones, and lists from a side table.
class PredictClicks : public Predict {
 protected:
  static constexpr int kRecords = 900;

  PredictClicks() {
    std::string all = "click,a,b,n,tags,site,shop\n", tests = "b,a,n,tags,site,shop\n";
    for (int i = 0; i < kRecords; ++i) {
      const RandomRow random(5, static_cast<std::uint64_t>(i));
      const auto draw = [&](std::uint64_t place, std::uint64_t most) {
        return random.bits(place) % most;
      };
      const std::string a = draw(0, 9) == 0 ? "?" : "a" + std::to_string(draw(1, 30) * draw(2, 30));
      const std::string b = "b" + std::to_string(draw(3, 5));
      const std::string rest = fmt::format("{},{},{},{}", draw(4, 300),
                                           draw(5, 3) == 0   ? ""
                                           : draw(5, 3) == 1 ? "x"
                                                             : "x|y",
                                           "s" + std::to_string(draw(6, 500)), draw(7, 12));
      const int click = draw(8, 10) < 2 + draw(1, 30) / 6 ? 1 : 0;
      all += fmt::format("{},{},{},{}\n", click, a, b, rest);
      if (split_part(static_cast<std::uint64_t>(i)) != Part::kTest) continue;
      tests += fmt::format("{},{},{}\n", b, a, rest);
      labels_.push_back(static_cast<float>(click));
    }
    files_.write("clicks.csv", all);
    files_.write_compressed("tests.csv.gz", tests);
    files_.write("shops.csv", "shop,kinds\n0,k0 k1\n1,k1\n2,\n3,k2\n5,k0\n11,k1 k2\n");
  }

  static Job job(const std::vector<Change>& changes = {}) {
    return parse_job(R"(
[data]
file = "clicks.csv"
label = "click"
range = [0, 1]
[ids.field]
columns = ["a", "b", "n"]
buckets = ["n"]
min_count = 3
missing = "?"
[ids.tag]
column = "tags"
keys = "string"
separator = "|"
[ids.site]
column = "site"
keys = "string"
hash = 40
[ids.shop]
column = "shop"
[ids.kind]
file = "shops.csv"
key = "shop"
of = "shop"
column = "kinds"
keys = "string"
separator = " "
[tables.field]
dim = 4
initializer = { kind = "normal", stddev = 0.1 }
[tables.weight]
ids = "field"
dim = 1
initializer = { kind = "normal", stddev = 0.1 }
[tables.tag]
dim = 3
initializer = { kind = "normal", stddev = 0.1 }
[tables.site]
dim = 2
initializer = { kind = "normal", stddev = 0.1 }
combiner = "sum"
[tables.shop]
dim = 5
initializer = { kind = "normal", stddev = 0.1 }
[tables.kind]
dim = 2
initializer = { kind = "normal", stddev = 0.1 }
combiner = "sqrtn"
[model]
kind = "ctr"
linear = ["weight"]
deep = ["field", "tag", "site", "shop", "kind"]
hidden = [9, 5]
[optimizer]
rule = "adagrad"
learning_rate = 0.1
[schedule]
batch = 60
epochs = 2
[split]
train_on_validation = true
)",
                     "clicks.toml", changes);
  }

  std::vector<float> labels_;  ///< of the test part
};

TEST_F(PredictClicks, GivesTheBitsThatEvalMeasures) {
  run(job({"strategy.hosts=2", "strategy.replicas=4"}));
  const Measures measures = measured();
  for (const char* data : {"clicks.csv", "shops.csv"}) std::filesystem::remove(files_.path(data));
  std::filesystem::remove_all(files_.path("out.cache"));
  const Scores found = scores("tests.csv.gz");
  EXPECT_THAT(found.columns, ElementsAre("line", "probability", "logit", "unseen"));
  ASSERT_EQ(found.lines.size(), labels_.size());
  const std::vector<float> logits = found.numbers("logit");
  EXPECT_EQ(log_loss(logits, labels_), value_of(measures, "logloss"));
  EXPECT_EQ(area_under_curve(logits, labels_), value_of(measures, "auc"));
  const std::vector<float> probabilities = found.numbers("probability");
  for (std::size_t i = 0; i < logits.size(); ++i)
    EXPECT_NEAR(probabilities[i], 1 / (1 + std::exp(-static_cast<double>(logits[i]))), 1e-7);
}

TEST_F(PredictClicks, ThreadsNeverShow) {
  run(job());
  const Scores one = scores("clicks.csv");
  EXPECT_EQ(one.lines.size(), static_cast<std::size_t>(kRecords));
  EXPECT_EQ(one.lines.front().front(), "2");
  EXPECT_EQ(one.lines.back().front(), std::to_string(kRecords + 1));
  EXPECT_EQ(one.lines, scores("clicks.csv", {}, 2).lines);
  EXPECT_EQ(one.lines, scores("clicks.csv", {}, 5).lines);
}

TEST_F(PredictClicks, CountsKeysWithoutARow) {
  run(job());
  files_.write("new.csv",
               "shop,site,tags,n,b,a\n"
               "1,s1,x,5,b1,new\n"     // a
               "1,new,new|x,5,b1,?\n"  // tag; hashed sites have no rows of their own
               "77,s1,,5,new,newer\n"  // shop, a, b
               "1,s1,x|y,5,b1,?\n");
  Scores found;
  const Prediction done = predicted("new.csv", found);
  EXPECT_EQ(found.numbers("unseen"), (std::vector<float>{1, 1, 3, 0}));
  EXPECT_EQ(done.counts.rows, 4);
  EXPECT_EQ(done.counts.with_unseen, 3);
  EXPECT_EQ(done.counts.unseen, (std::map<std::string, std::int64_t>{
                                    {"field", 3}, {"shop", 1}, {"site", 0}, {"tag", 1}}));
}

TEST_F(PredictClicks, UnseenKeysShareTheRareRow) {
  run(job());
  files_.write("new.csv",
               "shop,site,tags,n,b,a\n1,s1,x,5,b1,new\n1,s1,x,5,b1,newer\n1,s1,x|new,5,b1,new\n");
  const std::vector<float> logits = scores("new.csv").numbers("logit");
  EXPECT_EQ(logits[0], logits[1]);
  EXPECT_EQ(logits[0], logits[2]);  // an unknown tag is left out
}

TEST_F(PredictClicks, NamesWhatIsBroken) {
  run(job());
  files_.write(
      "new.csv",
      "shop,site,tags,n,b,a\n1,s,x,5,b,a\n1,s,x,five,b,a\n1,s\nnone,s,x,5,b,a\n1,s,x,6,b,a\n");
  EXPECT_EQ(refused<ValueError>("new.csv"),
            "new.csv:3:7: 'n' must be a number or empty, got 'five'");
  EXPECT_EQ(refused<ValueError>("new.csv", {.skip_bad = 2}),
            "new.csv:5:1: 'shop' must be an integer of 64 bits, got 'none'");
  Scores found;
  EXPECT_EQ(predicted("new.csv", found, {.skip_bad = 3}).counts.left_out, 3);
  ASSERT_EQ(found.lines.size(), 2u);
  EXPECT_EQ(found.lines[1].front(), "6");
  EXPECT_EQ(refused<IoError>("none.csv"), "'none.csv': cannot open: No such file or directory");
  files_.write("less.csv", "shop,site,tags,n,b\n");
  EXPECT_EQ(refused<ValueError>("less.csv"), "'less.csv' has no column 'a'; the nearest is 'n'");
  EXPECT_THAT(refused<ValueError>("new.csv", {.items = 3}),
              HasSubstr("must be for a model that ranks"));
}

TEST_F(PredictClicks, EmptyFilesHaveNoScores) {
  run(job());
  files_.write("new.csv", "shop,site,tags,n,b,a\n");
  EXPECT_EQ(scores("new.csv").lines.size(), 0u);
}

TEST_F(PredictClicks, LabelsOfFilesWithoutHeaderMayBeSaidToBeAbsent) {
  files_.write("bare.csv",
               "x,1,7\ny,0,8\nx,1,7\ny,0,9\nx,1,9\nz,0,8\nx,0,7\ny,1,8\nx,1,8\ny,0,7\n");
  run(parse_job(R"(
[data]
file = "bare.csv"
header = false
label = 2
range = [0, 1]
[ids.field]
columns = ["1", "3"]
[tables.field]
dim = 1
initializer = { kind = "normal", stddev = 0.1 }
[model]
kind = "ctr"
linear = ["field"]
[optimizer]
rule = "sgd"
learning_rate = 0.1
[schedule]
batch = 4
epochs = 1
)",
                "bare.toml"));
  files_.write("with.csv", "x,,7\ny,none,9\n");
  files_.write("without.csv", "x,7\ny,9\n");
  const Scores with = scores("with.csv");
  EXPECT_EQ(with.lines, scores("without.csv", {.has_label = false}).lines);
  EXPECT_EQ(with.numbers("unseen"), (std::vector<float>{0, 0}));
  EXPECT_THAT(refused<ValueError>("without.csv"), HasSubstr("column 3 is wanted, got 2 columns"));
}

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

/// What recall and its kin make of the lists that were predicted for some queries.
double quality(const Scores& scores, const std::string& metric, const Vocabulary& items,
               std::int64_t queries, const ListsView& wanted) {
  const RankingMetric what = *ranking_metric(metric);
  std::vector<std::int32_t> ranked(static_cast<std::size_t>(queries * what.cutoff), -1);
  std::int64_t query = -1;
  for (const std::vector<std::string>& line : scores.lines) {
    const std::int64_t rank = std::stoll(line[1]);
    if (rank == 1) ++query;
    ranked.at(static_cast<std::size_t>(query * what.cutoff + rank - 1)) =
        items.find(std::int64_t{std::stoll(line[2])});
  }
  return mean_quality(what, ranked, what.cutoff, wanted);
}

class PredictItems : public Predict {
 protected:
  PredictItems() { write_tiny_histories(files_); }

  static Histories histories_of(const Job& job, const TemporaryFiles& files) {
    const auto& spec = dynamic_cast<const HistoriesModelSpec&>(*job.model).histories();
    return read_histories(spec.data, spec.split, {.root = files.path()});
  }
};

TEST_F(PredictItems, OfPairsAreThoseThatEvalRanks) {
  const Job job = tiny_pairs();
  run(job);
  const Measures measures = measured();
  const Histories histories = histories_of(job, files_);
  std::string users;
  for (std::int32_t user = 0; user < histories.num_users(); ++user)
    users += histories.users.shown(user) + "\n";
  files_.write("users.txt", users);
  std::filesystem::remove(files_.path("groups.txt"));
  const Scores found = scores("users.txt", {.items = 10});
  EXPECT_THAT(found.columns, ElementsAre("user", "rank", "item", "score", "basis"));
  const ItemSets wanted = item_sets(histories, Part::kTest, Part::kTest);
  for (const char* metric : {"recall@10", "ndcg@10"}) {
    EXPECT_EQ(quality(found, metric, histories.items, histories.num_users(), wanted.view()),
              value_of(measures, metric));
  }
  EXPECT_EQ(found.lines, scores("users.txt", {}, 3).lines);  // 10 without another word
}

TEST_F(PredictItems, OfPairsLeaveOutWhatTheLineHas) {
  run(tiny_pairs());
  files_.write("users.txt", "100\n");
  const Scores before = scores("users.txt", {.items = 40});
  files_.write("users.txt", "100 " + before.lines[0][2] + " " + before.lines[2][2] + "\n");
  const Scores after = scores("users.txt", {.items = 40});
  ASSERT_EQ(after.lines.size(), before.lines.size() - 2);
  EXPECT_EQ(after.lines[0][2], before.lines[1][2]);
  EXPECT_EQ(after.lines[0][3], before.lines[1][3]);
  EXPECT_EQ(after.lines[1][2], before.lines[3][2]);
}

TEST_F(PredictItems, OfUnseenUsersStandOnWhatTheyHaveOrOnPopularity) {
  const Job job = tiny_pairs({"schedule.epochs=8"});
  run(job);
  files_.write("users.txt", "7 1 5 9 999\n8\n9 999\n101 5\n");
  Scores found;
  const Prediction done = predicted("users.txt", found, {.items = 3});
  ASSERT_EQ(found.lines.size(), 12u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(found.lines[static_cast<std::size_t>(i)][4], "history");
    EXPECT_EQ(std::stoi(found.lines[static_cast<std::size_t>(i)][2]) % 4, 1);  // the items' group
    EXPECT_EQ(found.lines[static_cast<std::size_t>(i) + 3][4], "popularity");
    EXPECT_EQ(found.lines[static_cast<std::size_t>(i) + 9][4], "user");
  }
  const Histories histories = histories_of(job, files_);
  std::map<std::int64_t, int> counts;
  for (std::size_t i = 0; i < histories.events.size(); ++i) {
    if (histories.part[i] != Part::kTest) ++counts[histories.items.integer(histories.events[i])];
  }
  const auto most = std::max_element(counts.begin(), counts.end(),
                                     [](auto a, auto b) { return a.second < b.second; });
  EXPECT_EQ(std::stoi(found.lines[3][3]), most->second);
  EXPECT_EQ(counts[std::stoi(found.lines[3][2])], most->second);
  EXPECT_EQ(found.lines[3][2], found.lines[6][2]);  // user 9 has no known item
  EXPECT_EQ(done.counts.rows, 4);
  EXPECT_EQ(done.counts.with_unseen, 3);
  EXPECT_EQ(done.counts.unseen, (std::map<std::string, std::int64_t>{{"item", 2}, {"user", 3}}));
}

TEST_F(PredictItems, AfterAHistoryAreThoseThatEvalRanks) {
  const Job job = tiny_chains({"schedule.epochs=3"});
  run(job);
  const Measures measures = measured();
  const Histories histories = histories_of(job, files_);
  std::string text;
  ItemSets wanted;
  for (std::size_t user = 0; user + 1 < histories.splits.size(); ++user) {
    text += histories.users.shown(static_cast<std::int32_t>(user));
    for (auto i = histories.splits[user]; i + 1 < histories.splits[user + 1]; ++i)
      text += " " + histories.items.shown(histories.events[static_cast<std::size_t>(i)]);
    text += "\n";
    wanted.items.push_back(
        histories.events[static_cast<std::size_t>(histories.splits[user + 1] - 1)]);
    wanted.splits.push_back(std::ssize(wanted.items));
  }
  files_.write_compressed("histories.txt", text);
  std::filesystem::remove(files_.path("chains.txt"));
  std::filesystem::remove(files_.path("classes.txt"));
  const Scores found = scores("histories.txt", {.items = 3});
  for (const char* metric : {"hr@3", "ndcg@3"}) {
    EXPECT_EQ(quality(found, metric, histories.items, histories.num_users(), wanted.view()),
              value_of(measures, metric));
  }
  EXPECT_EQ(found.lines, scores("histories.txt", {.items = 3}, 3).lines);
}

TEST_F(PredictItems, AfterAHistoryLeaveOutUnseenItems) {
  run(tiny_chains());
  files_.write("histories.txt", "1 1003 1004\n2 1003 5 1004 6\n3\n");
  Scores found;
  const Prediction done = predicted("histories.txt", found, {.items = 4});
  ASSERT_EQ(found.lines.size(), 12u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(found.lines[i][2], found.lines[i + 4][2]);
    EXPECT_EQ(found.lines[i][3], found.lines[i + 4][3]);
    EXPECT_EQ(found.lines[i + 8][4], "popularity");
  }
  EXPECT_EQ(done.counts.with_unseen, 1);
  EXPECT_EQ(done.counts.unseen, (std::map<std::string, std::int64_t>{{"item", 2}}));
}

TEST_F(PredictItems, BrokenLinesAreNamedOrLeftOut) {
  run(tiny_chains());
  files_.write("histories.txt", "1 1003\n2 1003 x 1004\ny 1003 z\n4 1005\n");
  EXPECT_EQ(refused<ValueError>("histories.txt", {.items = 1}),
            "histories.txt:2:8: a token must be an integer of 64 bits, got 'x'");
  EXPECT_EQ(refused<ValueError>("histories.txt", {.skip_bad = 1, .items = 1}),
            "histories.txt:3:1: a token must be an integer of 64 bits, got 'y'");
  Scores found;
  const Prediction done = predicted("histories.txt", found, {.skip_bad = 2, .items = 1});
  EXPECT_EQ(done.counts.left_out, 2);
  ASSERT_EQ(found.lines.size(), 2u);
  EXPECT_EQ(found.lines[0][0], "1");
  EXPECT_EQ(found.lines[1][0], "4");
  EXPECT_EQ(refused<ValueError>("histories.txt", {.items = 0}),
            "the number of items for each user must be 1 to 10000, got 0");
}

TEST_F(PredictItems, LongFilesAreReadInParts) {
  run(tiny_chains());
  std::string text;
  for (int user = 0; user < 2100; ++user) text += fmt::format("{} {}\n", user, 1000 + user % 90);
  files_.write("histories.txt", text);
  Scores found;
  EXPECT_EQ(predicted("histories.txt", found, {.items = 1}).counts.rows, 2100);
  ASSERT_EQ(found.lines.size(), 2100u);
  for (std::size_t user = 0; user + 90 < 2100; ++user) {
    EXPECT_EQ(found.lines[user][0], std::to_string(user));
    EXPECT_EQ(found.lines[user][2], found.lines[user + 90][2]);
  }
}

constexpr const char* kOrders = R"(
metrics = ["hr@3"]
[data]
file = "orders.csv"
time = "when"
once_per = "invoice"
[data.where]
count = "> 0"
[ids.user]
column = "who"
keys = "string"
[ids.item]
column = "what"
keys = "string"
[names.item]
file = "names.csv"
key = "what"
name = "called"
[tables.item]
dim = 4
initializer = { kind = "normal", stddev = 0.1 }
[model]
kind = "next_item"
item = "item"
last = 2
negatives = 3
[optimizer]
rule = "adagrad"
learning_rate = 0.1
[schedule]
batch = 16
epochs = 2
)";

/// Orders as records, whose items have names.
TEST_F(Predict, ReadsHistoriesFromRecords) {
  std::string orders = "who,what,when,count,invoice\n";
  for (int i = 0; i < 90; ++i)
    orders += fmt::format("u{},i{},{},1,v{}\n", i % 9, (i * 7 + i / 9) % 11, i, i);
  files_.write("orders.csv", orders);
  files_.write("names.csv", "what,called\ni1,\"One, \"\"1\"\"\"\ni2,Two\n");
  run(parse_job(kOrders, "orders.toml"));
  files_.write("new.csv",
               "who,what,when,count,invoice\n"
               "b,i4,9,1,x\na,i3,5,1,x\nb,i5,3,1,x\na,,6,1,x\na,i3,7,1,x\nc,i1,1,0,x\nb,i9,1,1,x\n"
               "d,,1,1,x\nb,none,4,1,x\n");
  Scores found;
  const Prediction done = predicted("new.csv", found, {.items = 2});
  EXPECT_THAT(found.columns, ElementsAre("user", "rank", "item", "name", "score", "basis"));
  EXPECT_EQ(done.counts.rows, 3);  // what is not counted makes no user
  EXPECT_EQ(done.counts.unseen.at("item"), 1);
  ASSERT_EQ(found.lines.size(), 6u);
  EXPECT_EQ(found.lines[0][0], "b");
  EXPECT_EQ(found.lines[2][0], "a");
  EXPECT_EQ(found.lines[4][0], "d");
  EXPECT_EQ(found.lines[4][5], "popularity");
  files_.write("b.csv", "who,what,when,count,invoice\nq,i9,2,1,x\nq,i5,2,1,x\nq,i4,3,1,x\n");
  const Scores in_order = scores("b.csv", {.items = 2});  // b's items by their times
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(found.lines[i][2], in_order.lines[i][2]);
    EXPECT_EQ(found.lines[i][4], in_order.lines[i][4]);
  }
  for (const std::vector<std::string>& line : scores("b.csv", {.items = 11}).lines) {
    EXPECT_EQ(line[3], line[2] == "i1" ? "One, \"1\"" : line[2] == "i2" ? "Two" : "");
    EXPECT_THAT((std::vector<std::string>{"i9", "i5", "i4"}),
                testing::Not(testing::Contains(line[2])));
  }
}

TEST_F(Predict, RefusesWordsByName) {
  files_.write("text.txt", "a b c a b c a b c d e f a b c d e f");
  run(parse_job(R"(
[data]
file = "text.txt"
[ids.word]
[tables.word]
dim = 4
initializer = { kind = "normal", stddev = 0.1 }
[tables.context]
ids = "word"
dim = 4
initializer = { kind = "normal", stddev = 0.1 }
[model]
kind = "skipgram"
word = "word"
context = "context"
[optimizer]
rule = "sgd"
learning_rate = 0.1
[schedule]
batch = 4
epochs = 1
[split]
test = 0.1
train_on_validation = true
)",
                "words.toml"));
  EXPECT_THAT(refused<NotImplemented>("text.txt"),
              HasSubstr("a model skipgram has no scores for new rows"));
  EXPECT_THAT(refused<NotImplemented>("text.txt"), HasSubstr("`embertable neighbors`"));
}

}  // namespace
}  // namespace embertable::jobs
