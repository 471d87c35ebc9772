#include "apps/jobs/models/next_item.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "apps/convert/saved_model.h"
#include "embertable/errors.h"
#include "testing/tiny_histories.h"
#include "testing/training_run.h"

namespace embertable::jobs {
namespace {

using Ids = std::vector<std::int32_t>;
using Floats = std::vector<float>;

class NextItemModel : public testing::Test {
 protected:
  NextItemModel() { write_tiny_histories(files_); }
  double hit_rate(const Job& job) const {
    return value_of(train_in(files_, job, {.threads = 2}).measures, "hr@3");
  }
  std::unique_ptr<Model> make(const Job& job) const {
    return job.model->make(job, {.root = files_.path()});
  }
  TemporaryFiles files_;
};

/// The same without attributes.
std::string without_attributes() {
  std::string text = kTinyChains;
  const auto cut = [&](const std::string& from, const std::string& to) {
    const std::size_t begin = text.find(from);
    text.erase(begin, text.find(to) - begin);
  };
  cut("[ids.class]", "[tables.before]");
  cut("[tables.before_class]", "[model]");
  cut("history_attributes", "last");
  return text;
}

TEST_F(NextItemModel, LearnsWhichClassComesNext) {
  EXPECT_GT(hit_rate(tiny_chains({"schedule.epochs=12"})), 0.95);
  EXPECT_LT(hit_rate(tiny_chains({"schedule.epochs=0"})), 0.2);
}

TEST_F(NextItemModel, LearnsWithoutAttributesMoreSlowly) {
  const std::string plain = without_attributes();
  const std::vector<Change> two = {"schedule.epochs=2"};
  EXPECT_GT(hit_rate(parse_job(plain, "plain.toml", {"schedule.epochs=30"})), 0.9);
  EXPECT_LT(hit_rate(parse_job(plain, "plain.toml", two)) + 0.1, hit_rate(tiny_chains(two)));
}

TEST_F(NextItemModel, HistoryAndCandidatesMayShareTheirTables) {
  const std::string text = R"([tables.item]
dim = 10
initializer = { kind = "normal", stddev = 0.1 }
[model]
kind = "next_item"
item = "item"
)";
  std::string shared = without_attributes();
  shared.replace(shared.find("[tables.before]"),
                 shared.find("last = 2") - shared.find("[tables.before]"), text);
  const Job job = parse_job(shared, "shared.toml", {"schedule.epochs=2"});
  const auto features = make(job)->features();
  EXPECT_EQ(features[0].table, "item");
  EXPECT_EQ(features[1].table, "item");
  EXPECT_GE(hit_rate(job), 0);
}

/// Two users: items 10 and 20 with the attributes {1, 2} and {3}, item 30 with none.
class NextItemInput : public testing::Test {
 protected:
  NextItemInput() {
    files_.write("chains.txt", "1 10 20 30 10 20\n2 30 20 10 30\n");
    files_.write("classes.txt", "20 3\n10 1 2\n");
    job_ = tiny_chains({"split.train_on_validation=false", "model.negatives=3"});
    model_ = job_.model->make(job_, {.root = files_.path()});
    count_ = model_->begin_epoch(1);
    ids_.resize(4);
    model_->fill(0, count_, ids_);
  }
  TemporaryFiles files_;
  Job job_;
  std::unique_ptr<Model> model_;
  std::int64_t count_ = 0;
  std::vector<StepIds> ids_;
};

TEST_F(NextItemInput, AHistoryIsWhatCameLast) {
  EXPECT_EQ(count_, 3);  // 10 20 | 10 20 30 | 30 20
  EXPECT_EQ(model_->samples(Part::kTest), 2);
  EXPECT_EQ(model_->samples(Part::kValidation), 2);
  std::vector<std::pair<Ids, std::int32_t>> found;  // history and what came next
  for (std::size_t s = 0; s < 3; ++s) {
    found.emplace_back(
        Ids(ids_[0].ids.begin() + ids_[0].splits[s], ids_[0].ids.begin() + ids_[0].splits[s + 1]),
        ids_[1].ids[4 * s]);
    for (std::size_t k = 1; k < 4; ++k) EXPECT_NE(ids_[1].ids[4 * s + k], found.back().second);
  }
  std::sort(found.begin(), found.end());
  const std::vector<std::pair<Ids, std::int32_t>> wanted = {{{0}, 1}, {{0, 1}, 2}, {{2}, 1}};
  EXPECT_EQ(found, wanted);
}

TEST_F(NextItemInput, AttributesStandForTheirItems) {
  const std::vector<Ids> of_item = {{1, 2}, {0}, {}};
  const StepIds &history = ids_[0], &items = ids_[1], &before = ids_[2], &next = ids_[3];
  ASSERT_EQ(next.splits.size(), items.ids.size() + 1);
  for (std::size_t i = 0; i < items.ids.size(); ++i) {
    EXPECT_EQ(Ids(next.ids.begin() + next.splits[i], next.ids.begin() + next.splits[i + 1]),
              of_item[items.ids[i]]);
  }
  EXPECT_TRUE(next.weights.empty());
  ASSERT_EQ(before.weights.size(), before.ids.size());
  for (std::size_t s = 0; s < 3; ++s) {
    Ids ids;
    Floats weights;
    for (auto i = history.splits[s]; i < history.splits[s + 1]; ++i) {
      const Ids& own = of_item[history.ids[i]];
      ids.insert(ids.end(), own.begin(), own.end());
      weights.insert(weights.end(), own.size(), 1.0f / static_cast<float>(own.size()));
    }
    EXPECT_EQ(Ids(before.ids.begin() + before.splits[s], before.ids.begin() + before.splits[s + 1]),
              ids);
    EXPECT_EQ(Floats(before.weights.begin() + before.splits[s],
                     before.weights.begin() + before.splits[s + 1]),
              weights);
  }
}

TEST_F(NextItemInput, ItemsWithoutAttributesCountInTheMean) {
  // What is looked up: 2 in every column of the history, 4 of its attributes, items of 0.1.
  for (std::int64_t s = 0; s < count_; ++s) {
    Floats history(10, 2), items(40, 0.1f), before(10, 4), next(40, 0);
    float* const rows[] = {history.data(), items.data(), before.data(), next.data()};
    const double losses = model_->gradients({.first = s, .samples = 1, .of_step = 1, .rows = rows});
    // The history {30} has no attribute at all.
    const bool none = ids_[0].ids[ids_[0].splits[s]] == 2;
    const double score = 10 * (none ? 2 : 6) * 0.1;
    EXPECT_NEAR(losses, std::log1p(std::exp(-score)) + 3 * std::log1p(std::exp(score)), 1e-4);
  }
}

TEST_F(NextItemModel, SavesWhatAnItemAndItsAttributesAmountTo) {
  const std::vector<Change> still = {"schedule.epochs=0", "tables.next.initializer.stddev=0",
                                     "tables.next.initializer.mean=2"};
  train_in(files_, tiny_chains(still), {.out = files_.path("run")});
  const SavedTableRows items(files_.path("run"), "next"), classes(files_.path("run"), "next_class");
  ASSERT_EQ(items.rows(), 90);
  const auto expect = [&](const char* item, const std::vector<const char*>& attributes) {
    for (std::int64_t k = 0; k < 10; ++k) {
      double sum = 0;
      for (const char* key : attributes) sum += classes.row(classes.row_of_key(key))[k];
      const double mean = attributes.empty() ? 0 : sum / static_cast<double>(attributes.size());
      EXPECT_NEAR(items.row(items.row_of_key(item))[k], 2 + mean, 1e-6);
    }
  };
  expect("1003", {"3"});
  expect("1034", {"4", "77"});
  expect("1005", {});
}

std::string refused_next_item(const std::vector<Change>& changes) {
  return refusal<ValueError>("", [&] { tiny_chains(changes); });
}

TEST(NextItemSpec, SaysWhichKeyBreaksWhichRule) {
  EXPECT_EQ(refused_next_item({"split.rule=pairs"}),
            "split.rule=pairs: split.rule must be one of last, got \"pairs\"");
  EXPECT_EQ(refused_next_item({"tables.before.combiner=sum"}),
            "chains.toml:30: model.history must name a table whose combiner is \"mean\", got "
            "\"before\"");
  EXPECT_EQ(refused_next_item({"model.negatives=1024"}),
            "model.negatives=1024: model.negatives must be an integer from 1 to 1023, got "
            "1024");
}

}  // namespace
}  // namespace embertable::jobs
