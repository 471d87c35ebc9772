// What models that rank say of new histories.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "apps/jobs/data/histories.h"
#include "apps/jobs/data/ranking.h"
#include "apps/jobs/models/histories_model.h"
#include "testing/predicted_scores.h"
#include "testing/tiny_histories.h"
#include "testing/tiny_words.h"

namespace embertable::jobs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// What recall and its kin make of the lists that were predicted for some queries.
double quality(const Scores& scores, const std::string& metric, const Vocabulary& items,
               std::int64_t queries, const ListsView& wanted) {
  const RankingMetric what = *ranking_metric(metric);
  std::vector<std::int32_t> ranked(queries * what.cutoff, -1);
  std::int64_t query = -1;
  for (const std::vector<std::string>& line : scores.lines) {
    const std::int64_t rank = std::stoll(line[1]);
    if (rank == 1) ++query;
    ranked.at(query * what.cutoff + rank - 1) = items.find(std::int64_t{std::stoll(line[2])});
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
    EXPECT_EQ(found.lines[i][4], "history");
    EXPECT_EQ(std::stoi(found.lines[i][2]) % 4, 1);  // the items' group
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
      text += " " + histories.items.shown(histories.events[i]);
    text += "\n";
    wanted.items.push_back(histories.events[histories.splits[user + 1] - 1]);
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
            "histories.txt:3:1: a token must be an integer of 64 bits, got 'y'; 1 broken before it "
            "is left out, and no more may be");
  Scores found;
  const Prediction done = predicted("histories.txt", found, {.skip_bad = 2, .items = 1});
  EXPECT_EQ(done.counts.left_out, 2);
  ASSERT_EQ(found.lines.size(), 2u);
  EXPECT_EQ(found.lines[0][0], "1");
  EXPECT_EQ(found.lines[1][0], "4");
  EXPECT_EQ(refused<ValueError>("histories.txt", {.items = 0}),
            "the number of items for each user must be 1 to 10000, got 0");
}

TEST_F(PredictItems, ATokenThatIsTooLongIsABrokenLine) {
  run(tiny_chains());
  const std::string token(17 << 20, '9');
  files_.write("histories.txt", "1 1003\n2 1003 " + token + " 1004\n3 1003\n");
  Scores found;
  const Prediction done = predicted("histories.txt", found, {.skip_bad = 1, .items = 1});
  EXPECT_EQ(done.counts.left_out, 1);
  ASSERT_EQ(found.lines.size(), 2u);
  EXPECT_EQ(found.lines[1][0], "3");
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
  files_.write("bare.csv", "who,what\nq,i9\nq,i5\nq,i4\n");
  Scores bare;
  EXPECT_THAT(predicted("bare.csv", bare, {.items = 2}).counts.absent,
              ElementsAre("count", "when", "invoice"));
  EXPECT_EQ(bare.lines, in_order.lines);  // by the order of the file
  files_.write("users.csv", "who,when\nq,1\n");
  EXPECT_THAT(refused<ValueError>("users.csv"), HasSubstr("'users.csv' has no column 'what'"));
  for (const std::vector<std::string>& line : scores("b.csv", {.items = 11}).lines) {
    EXPECT_EQ(line[3], line[2] == "i1" ? "One, \"1\"" : line[2] == "i2" ? "Two" : "");
    EXPECT_THAT((std::vector<std::string>{"i9", "i5", "i4"}),
                testing::Not(testing::Contains(line[2])));
  }
}

/// A model with rows of users needs no items of theirs.
TEST_F(Predict, UsersMayComeWithoutItems) {
  std::string likes = "who,what\n";
  for (int i = 0; i < 90; ++i) likes += fmt::format("u{},i{}\n", i % 9, (i * 7 + i / 9) % 11);
  files_.write("likes.csv", likes);
  run(
      parse_job("[data]\nfile = \"likes.csv\"\n[ids]\n"
                "user = { column = \"who\", keys = \"string\" }\n"
                "item = { column = \"what\", keys = \"string\" }\n"
                "[model]\nkind = \"pairwise\"\ndim = 4\n[schedule]\nepochs = 1\n",
                "likes.toml"));
  files_.write("both.csv", "who,what\nu3,\nu5,\nnew,\n");
  files_.write("users.csv", "who\nu3\nu5\nnew\n");
  Scores found;
  EXPECT_THAT(predicted("users.csv", found, {.items = 2}).counts.absent, ElementsAre("what"));
  ASSERT_EQ(found.lines.size(), 6u);
  EXPECT_EQ(found.lines, scores("both.csv", {.items = 2}).lines);
}

TEST_F(Predict, RefusesWordsByName) {
  write_tiny_words(files_);
  run(tiny_words());
  EXPECT_THAT(refused<NotImplemented>("text.txt"),
              HasSubstr("a model skipgram has no scores for new rows"));
  EXPECT_THAT(refused<NotImplemented>("text.txt"), HasSubstr("`embertable neighbors`"));
}

}  // namespace
}  // namespace embertable::jobs
