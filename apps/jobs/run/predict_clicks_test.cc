// What a model of clicks says of new records.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "apps/jobs/math/metrics.h"
#include "apps/jobs/spec/split.h"
#include "base/random.h"
#include "testing/predicted_scores.h"

namespace embertable::jobs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

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

  std::vector<float> labels_;  ///< labels of the test part
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
            "new.csv:5:1: 'shop' must be an integer of 64 bits, or any text with keys = "
            "\"string\", got 'none'; 2 broken before it are left out, and no more may be");
  Scores found;
  EXPECT_EQ(predicted("new.csv", found, {.skip_bad = 3}).counts.left_out, 3);
  ASSERT_EQ(found.lines.size(), 2u);
  EXPECT_EQ(found.lines[1].front(), "6");
  EXPECT_EQ(refused<IoError>("none.csv"), "'none.csv': cannot open: No such file or directory");
  files_.write("less.csv", "shop,site,tags,n,b\n");
  EXPECT_EQ(refused<ValueError>("less.csv"), "'less.csv' has no column 'a'");
  EXPECT_THAT(refused<ValueError>("new.csv", {.items = 3}),
              HasSubstr("must be for a model that ranks"));
}

/// Columns 2 and 3 were meant, and a column of the new file would be.
TEST_F(PredictClicks, NoColumnMayBeCalledAsARangeIsWritten) {
  run(parse_job(R"(
[data]
file = "clicks.csv"
label = "click"
range = [0, 1]
[ids.field]
columns = ["2-3"]
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
batch = 60
epochs = 1
)",
                "range.toml"));
  files_.write("same.csv", "click,a,b\n,a1,b1\n");
  EXPECT_EQ(scores("same.csv").lines.size(), 1u);
  files_.write("new.csv", "click,2-3,b\n,a1,b1\n");
  EXPECT_EQ(
      refused<ValueError>("new.csv"),
      "'new.csv': \"2-3\" must be a range of columns alone, got a header in which column 2 has "
      "this name; its number names the column");
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

}  // namespace
}  // namespace embertable::jobs
