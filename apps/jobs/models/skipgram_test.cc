#include "apps/jobs/models/skipgram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "apps/convert/saved_model.h"
#include "apps/jobs/run/evaluate.h"
#include "apps/jobs/run/neighbors.h"
#include "apps/jobs/spec/job.h"
#include "base/random.h"
#include "embertable/errors.h"
#include "kernels/level.h"
#include "testing/executor.h"
#include "testing/training_run.h"

namespace embertable::jobs {
namespace {

constexpr int kTopics = 8, kWordsOfTopic = 4;

std::string word(int topic, int number) {
  return std::string("w") + static_cast<char>('a' + topic) + static_cast<char>('a' + number);
}

/// A text that talks of one topic for ten words, then of another.
std::string topics(int words) {
  std::string text;
  const RandomRow random(5, 0);
  for (int i = 0; i < words; ++i) {
    const auto topic =
        static_cast<int>(random.bits(static_cast<std::uint64_t>(i / 10), 1) % kTopics);
    const auto number =
        static_cast<int>(random.bits(static_cast<std::uint64_t>(i)) % kWordsOfTopic);
    text += word(topic, number) + (i % 13 == 12 ? "\n" : " ");
  }
  return text;
}

constexpr const char* kWordJob = R"(
[data]
file = "text"
similarity = "pairs.csv"
[ids.word]
min_count = 2
[tables.vector]
ids = "word"
dim = 12
initializer = { kind = "uniform", low = -0.05, high = 0.05 }
[tables.context]
ids = "word"
dim = 12
initializer = { kind = "zeros" }
[model]
kind = "skipgram"
word = "vector"
context = "context"
window = 3
run = 8
run_negatives = 6
subsample = 0.005
[optimizer]
rule = "sgd"
learning_rate = 0.05
[schedule]
rate = "linear"
batch = 8
epochs = 2
[split]
test = 0.1
validation = 0.125
)";

Job skipgram_job(const std::vector<Change>& changes = {}) {
  return parse_job(kWordJob, "words.toml", changes);
}

class SkipgramJob : public testing::Test {
 protected:
  SkipgramJob() {
    files_.write("text", topics(6000));
    std::string pairs = "a,b,score\n";
    for (int topic = 0; topic < kTopics; ++topic) {
      pairs += word(topic, 0) + "," + word(topic, 1) + ",9\n";
      pairs += word(topic, 0) + "," + word((topic + 1) % kTopics, 0) + ",1\n";
    }
    files_.write("pairs.csv", pairs + "nothing,known,5\n");
  }

  TrainReport run(const std::vector<Change>& changes = {}, TrainOptions options = {}) const {
    if (options.threads == 0 && !options.executor) options.threads = 1;
    return train_in(files_, skipgram_job(changes), options);
  }
  TemporaryFiles files_;
};

TEST_F(SkipgramJob, BeginsAtSixTimesTheLogarithmOfTwo) {
  const TrainReport report = run({"optimizer.learning_rate=1e-30"});
  EXPECT_EQ(report.measured_part, "validation");
  EXPECT_NEAR(value_of(report.measures, "loss"), 6 * std::log(2.0), 1e-4);
}

TEST_F(SkipgramJob, LearnsWhichWordsStandTogether) {
  const TrainReport report =
      run({"schedule.epochs=20", "split.train_on_validation=true"}, {.out = files_.path("out")});
  EXPECT_EQ(report.measured_part, "test");
  EXPECT_LT(value_of(report.measures, "loss"), 3.4);
  EXPECT_GT(value_of(report.measures, "spearman"), 0.8);  // 8 equal scores each: 0.866 at most
  const SavedTableRows words(files_.path("out"), "vector");
  for (int topic = 0; topic < kTopics; ++topic) {
    for (const Neighbor& near : nearest_rows(words, words.row_of_key(word(topic, 0)), 3))
      EXPECT_EQ(words.key(near.row)[1], 'a' + topic);
  }
}

TEST_F(SkipgramJob, GivesTheSameBitsWhereverItRuns) {
  const std::vector<Change> small = {"strategy.replicas=2", "engine.inline_floats=0",
                                     "engine.bucket_bytes=512", "schedule.batch=48"};
  const auto with = [&](const Change& change) {
    std::vector<Change> changes = small;
    changes.push_back(change);
    return changes;
  };
  const TrainReport report = run(small);
  EXPECT_EQ(report.digest, "5d6afc16d3ac64892c8d7bd50dfe7467") << "is the same as ever";
  for (const std::int32_t threads : {2, 3, 7})
    EXPECT_EQ(run(small, {.threads = threads}).digest, report.digest) << threads;
  EXPECT_EQ(run(with("strategy.hosts=2"), {.threads = 2}).digest, report.digest);
  EXPECT_EQ(run(with("schedule.look_ahead=0")).digest, report.digest);
  EXPECT_EQ(run(with("schedule.look_ahead=4"), {.threads = 2}).digest, report.digest);
  EXPECT_EQ(run(with("engine.inline_floats=100000")).digest, report.digest);
  const TrainReport shuffled =
      run(small, {.executor = std::make_shared<TestExecutor>(test_seed(), 5)});
  EXPECT_EQ(shuffled.digest, report.digest);
  EXPECT_EQ(value_of(shuffled.measures, "loss"), value_of(report.measures, "loss"));
  EXPECT_EQ(value_of(shuffled.measures, "spearman"), value_of(report.measures, "spearman"));
  for (const SimdLevel level : usable_levels()) {
    setenv("EMBERTABLE_SIMD", std::string(to_string(level)).c_str(), 1);
    EXPECT_EQ(run(small).digest, report.digest) << to_string(level);
  }
  unsetenv("EMBERTABLE_SIMD");
  EXPECT_NE(run(with("seed=2")).digest, report.digest);
}

TEST_F(SkipgramJob, GoesOnWhereItWasBrokenOff) {
  struct Breaker : TrainObserver {
    void stepped(const StepReport&) override { stop = ++steps == at; }
    void finished_epoch(const EpochReport& epoch) override {
      losses.push_back(epoch.training.value);
    }
    std::atomic<bool> stop = false;
    int steps = 0, at = 0;
    std::vector<double> losses;
  };
  Breaker whole;
  const Job job = skipgram_job();
  const TrainReport report = train_in(files_, job, {.threads = 1}, whole);
  for (const int at : {3, whole.steps / 2 + 2}) {
    const std::string out = files_.path("out" + std::to_string(at));
    Breaker first, second;
    first.at = at;
    EXPECT_TRUE(train_in(files_, job,
                         {.out = out, .threads = 1, .stop = [&] { return first.stop.load(); }},
                         first)
                    .interrupted);
    const TrainReport resumed =
        train_in(files_, job, {.out = out, .resume = true, .threads = 2}, second);
    EXPECT_EQ(resumed.digest, report.digest) << at;
    EXPECT_EQ(resumed.steps, report.steps);
    EXPECT_EQ(value_of(resumed.measures, "loss"), value_of(report.measures, "loss"));
    EXPECT_EQ(second.losses.back(), whole.losses.back());
  }
}

TEST_F(SkipgramJob, IsMeasuredAgainFromItsFiles) {
  const TrainReport report = run({"split.train_on_validation=true"}, {.out = files_.path("out")});
  const Evaluation found = evaluate(files_.path("out"), {.data_root = files_.path(), .threads = 1});
  EXPECT_EQ(value_of(found.measures, "loss"), value_of(report.measures, "loss"));
  EXPECT_EQ(value_of(found.measures, "spearman"), value_of(report.measures, "spearman"));
}

TEST_F(SkipgramJob, TheNumberOfSharedNegativesLeavesTheLossWhatItIs) {
  // Both estimate the same loss; what they draw differs.
  const double many =
      value_of(run({"schedule.epochs=8", "model.run_negatives=32"}).measures, "loss");
  const double few = value_of(run({"schedule.epochs=8", "model.run_negatives=5"}).measures, "loss");
  EXPECT_NEAR(many, few, 0.3);
}

TEST_F(SkipgramJob, ReadsSeveralFiles) {
  files_.write("second", topics(500));
  std::string text = kWordJob;
  text.replace(text.find("file = \"text\""), 13, R"(files = ["text", "second"])");
  const TrainReport report = train_in(files_, parse_job(text, "words.toml"), {.threads = 1});
  EXPECT_GT(report.steps, run().steps);
}

TEST_F(SkipgramJob, NoRowIsTouchedForWordsBeyondTheText) {
  // Runs of 4 words, a step each: six words are a run and a half, and each word has one step.
  files_.write("text", "waa wab wba wbb wca wcb");
  const std::vector<Change> changes = {"ids.word.min_count=1",
                                       "model.run=4",
                                       "model.window=1",
                                       "model.subsample=0",
                                       "split.test=0",
                                       "split.validation=0",
                                       "split.train_on_validation=true",
                                       "schedule.batch=1",
                                       "schedule.epochs=1",
                                       "optimizer.learning_rate=1e-30",
                                       "optimizer.weight_decay_factor=0.5",
                                       "tables.vector.initializer={kind=\"constant\",value=1}"};
  run(changes, {.out = files_.path("out")});
  const SavedTableRows words(files_.path("out"), "vector");
  for (const char* key : {"waa", "wab", "wba", "wbb", "wca", "wcb"})
    EXPECT_EQ(*words.row(words.row_of_key(key)), 0.5f) << key;
}

std::string refused_words(const std::vector<Change>& changes) {
  return refusal<ValueError>("", [&] { skipgram_job(changes); });
}

TEST(SkipgramSpec, RefusesWhatDoesNotFit) {
  EXPECT_EQ(refused_words({"model.context=\"vector\""}),
            "model.context=\"vector\": model.context must be another table than that of the "
            "words, got 'vector'");
  EXPECT_EQ(refused_words({"tables.context.dim=5"}),
            "words.toml:18: model.context must be a table of the dim of that of the words, got "
            "'context'");
  EXPECT_EQ(refused_words({"model.window=33"}),
            "model.window=33: model.window must be an integer from 1 to 32, got 33");
  EXPECT_EQ(
      refused_words({"split.test=0.95"}),
      "words.toml:32: split.validation must be below 1 together with the test part, got 0.125");
  EXPECT_EQ(refused_words({"model.widow=3"}),
            "model.widow=3: model has no key 'widow'; the nearest is 'window'");
}

TEST_F(SkipgramJob, RefusesATextWithoutWords) {
  files_.write("text", "1 2 3");
  EXPECT_EQ(refusal<ValueError>(files_.path(), [&] { run(); }),
            "'text' must have words that occur 2 times or more, got none");
}

TEST_F(SkipgramJob, LooksUpOnlyTheContextsOfItsPairs) {
  const auto contexts = [&](const std::vector<Change>& changes) {
    std::vector<Change> all = {"model.subsample=0", "split.test=0", "split.validation=0"};
    all.insert(all.end(), changes.begin(), changes.end());
    const Job job = skipgram_job(all);
    const std::unique_ptr<Model> model = job.model->make(job, {.root = files_.path()});
    const std::int64_t runs = model->begin_epoch(1);
    std::vector<StepIds> ids(3);
    model->fill(0, runs, ids);
    std::vector<std::int32_t> found = ids[1].ids;
    return found;
  };
  // A centre is no context of its own; the first and the last have one neighbour.
  const std::vector<std::int32_t> alone = contexts({"model.run=1", "model.window=1"});
  ASSERT_EQ(alone.size(), 3u * 6000);
  for (std::size_t i = 1; i < alone.size(); i += 3) EXPECT_EQ(alone[i], -1);
  EXPECT_EQ(std::count(alone.begin(), alone.end(), -1), 6000 + 2);
  // Neighbours in a run are each other's contexts.
  const std::vector<std::int32_t> pairs = contexts({"model.run=2", "model.window=1"});
  EXPECT_EQ(std::count(pairs.begin(), pairs.end(), -1), 2);
  // A reach of 1, 2 or 3 words names 2, 4 or 6 of 7, each about as often.
  const std::vector<std::int32_t> drawn = contexts({"model.run=1", "model.window=3"});
  const auto named = static_cast<double>(drawn.size()) -
                     static_cast<double>(std::count(drawn.begin(), drawn.end(), -1));
  EXPECT_NEAR(named / 6000, 4, 0.1);
}

}  // namespace
}  // namespace embertable::jobs
