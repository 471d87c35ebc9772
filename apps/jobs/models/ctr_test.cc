#include "apps/jobs/models/ctr.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "apps/jobs/data/data_set.h"
#include "apps/jobs/math/metrics.h"
#include "apps/jobs/run/evaluate.h"
#include "apps/jobs/spec/split.h"
#include "base/random.h"
#include "embertable/checkpoint.h"
#include "embertable/errors.h"
#include "testing/executor.h"
#include "testing/predicted_scores.h"
#include "testing/training_run.h"

namespace embertable::jobs {
namespace {

using testing::HasSubstr;

constexpr int kRecords = 3000;

/// What makes a click likely.
enum class Rule { kSumIsEven, kAIsLarge };

struct Click {
  int a, b;
  bool happened;
};

/// Nine of ten or one of ten; where the rule is the sum, neither field alone tells anything.
double probability(const Click& click, Rule rule) {
  const bool likely = rule == Rule::kSumIsEven ? (click.a + click.b) % 2 == 0 : click.a >= 2;
  return likely ? 0.9 : 0.1;
}

Click make_click(int record, Rule rule) {
  const RandomRow random(11, static_cast<std::uint64_t>(record));
  Click click{.a = static_cast<int>(random.bits(0) % 4), .b = static_cast<int>(random.bits(1) % 4)};
  click.happened = uniform_double(random.bits(2)) < probability(click, rule);
  return click;
}

/// A record has its fields a and b, and as tags the even numbers up to a.
void write_clicks(const TemporaryFiles& files, Rule rule) {
  std::string text = "click,a,b,tags\n";
  for (int record = 0; record < kRecords; ++record) {
    const Click click = make_click(record, rule);
    text += click.happened ? "1," : "0,";
    text += std::to_string(click.a) + "," + std::to_string(click.b) + ",t0";
    text += click.a >= 2 ? "|t2\n" : "\n";
  }
  files.write("clicks.csv", text);
}

/// On the records that are measured, of whoever knows how they were made.
double best_log_loss(Rule rule) {
  double sum = 0;
  int samples = 0;
  for (int record = 0; record < kRecords; ++record) {
    if (split_part(static_cast<std::uint64_t>(record)) != Part::kValidation) continue;
    const Click click = make_click(record, rule);
    const double p = probability(click, rule);
    sum -= std::log(click.happened ? p : 1 - p);
    ++samples;
  }
  return sum / samples;
}

constexpr const char* kClickJob = R"(
[data]
file = "clicks.csv"
label = "click"
range = [0, 1]
[ids.a]
column = "a"
[ids.b]
column = "b"
[ids.tag]
column = "tags"
keys = "string"
separator = "|"
[tables.a]
dim = 4
initializer = { kind = "normal", stddev = 0.3 }
[tables.b]
dim = 3
initializer = { kind = "normal", stddev = 0.3 }
[tables.tag]
dim = 2
initializer = { kind = "normal", stddev = 0.3 }
[tables.a_weight]
ids = "a"
dim = 1
initializer = { kind = "zeros" }
[tables.b_weight]
ids = "b"
dim = 1
initializer = { kind = "zeros" }
[model]
kind = "ctr"
linear = ["a_weight", "b_weight"]
deep = ["a", "b", "tag"]
hidden = [12, 5]
regularization = 0.0001
dense = { learning_rate = 0.05, initial_accumulator = 0.1, regularization = 0.0001 }
[optimizer]
rule = "adagrad"
learning_rate = 0.1
[schedule]
batch = 64
epochs = 6
)";

/// The same without some sections and keys.
std::string without(std::string job, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    const std::size_t begin = job.find(part);
    EXPECT_NE(begin, std::string::npos) << part;
    const std::size_t end = part.front() == '[' ? job.find("\n[", begin) : job.find('\n', begin);
    job.erase(begin, end - begin + 1);
  }
  return job;
}

class CtrJob : public testing::Test {
 protected:
  CtrJob() { write_clicks(files_, Rule::kSumIsEven); }

  TrainReport run(const std::vector<Change>& changes = {}, const TrainOptions& options = {},
                  const std::string& text = kClickJob) {
    return train_in(files_, parse_job(text, "clicks.toml", changes), options);
  }

  TemporaryFiles files_;
};

TEST_F(CtrJob, ComesFromAConstantToTheBestThereIs) {
  struct Start : TrainObserver {
    void started(const StartReport& start) override { baseline = start.baselines.front(); }
    Baseline baseline;
  } start;
  const TrainReport report = train_in(files_, parse_job(kClickJob, "clicks.toml"), {}, start);
  EXPECT_EQ(start.baseline.name, "constant");
  EXPECT_NEAR(value_of(start.baseline.measures, "logloss"), std::log(2.0), 0.01);
  EXPECT_EQ(value_of(start.baseline.measures, "auc"), 0.5);
  EXPECT_NEAR(value_of(report.measures, "logloss"), best_log_loss(Rule::kSumIsEven), 0.02);
  EXPECT_GT(value_of(report.measures, "auc"), 0.85);
}

TEST_F(CtrJob, OfALinearPartAloneLearnsWhatSingleFieldsTell) {
  const std::string linear = without(
      kClickJob, {"[tables.a]", "[tables.b]", "[tables.tag]", "[ids.tag]", "deep =", "hidden ="});
  EXPECT_NEAR(value_of(run({}, {}, linear).measures, "logloss"), std::log(2.0), 0.01);
  write_clicks(files_, Rule::kAIsLarge);
  EXPECT_NEAR(value_of(run({}, {}, linear).measures, "logloss"), best_log_loss(Rule::kAIsLarge),
              0.02);
}

TEST_F(CtrJob, OfAnMlpAloneLearnsTheSame) {
  const TrainReport report =
      run({}, {}, without(kClickJob, {"[tables.a_weight]", "[tables.b_weight]", "linear ="}));
  EXPECT_NEAR(value_of(report.measures, "logloss"), best_log_loss(Rule::kSumIsEven), 0.02);
}

TEST_F(CtrJob, LooksSeveralFieldsUpInOneTable) {
  const std::string job = R"(
[data]
file = "clicks.csv"
label = "click"
negative = ["0"]
[ids.field]
columns = ["a", "b"]
[tables.vector]
ids = "field"
dim = 4
initializer = { kind = "normal", stddev = 0.3 }
[tables.weight]
ids = "field"
dim = 1
initializer = { kind = "zeros" }
[model]
kind = "ctr"
linear = ["weight"]
deep = ["vector"]
hidden = [12]
dense = { learning_rate = 0.05 }
[optimizer]
rule = "adagrad"
learning_rate = 0.1
[schedule]
batch = 64
epochs = 6
)";
  const std::string out = files_.path("out");
  const TrainReport report = run({}, {.out = out}, job);
  EXPECT_NEAR(value_of(report.measures, "logloss"), best_log_loss(Rule::kSumIsEven), 0.02);
  const CallerState state = read_saved_state(out).caller;
  EXPECT_EQ(state.tensors.at("model.layer1.weight").shape, (std::vector<std::int64_t>{8, 12}));
  EXPECT_EQ(run({"strategy.replicas=2"}, {}, job).digest,
            run({"strategy.replicas=2", "strategy.hosts=2"}, {}, job).digest);
}

TEST_F(CtrJob, IsTheSameAsEver) {
  EXPECT_EQ(run({"schedule.batch=600", "strategy.replicas=2"}).digest,
            "bbe19cb8ccf85c02aea5378d728768b1");
}

TEST_F(CtrJob, GivesTheSameBitsWhereverItRuns) {
  for (const std::string replicas : {"1", "2"}) {
    // Three blocks a step, the last one a part; the last batch of an epoch is smaller.
    const std::vector<Change> same = {"schedule.batch=600", "schedule.epochs=2",
                                      "strategy.replicas=" + replicas};
    const TrainReport wanted = run(same);
    const auto expect_same = [&](const std::vector<Change>& more, const TrainOptions& options) {
      std::vector<Change> changes = same;
      changes.insert(changes.end(), more.begin(), more.end());
      const TrainReport report = run(changes, options);
      EXPECT_EQ(report.digest, wanted.digest);
      EXPECT_EQ(value_of(report.measures, "logloss"), value_of(wanted.measures, "logloss"));
      EXPECT_EQ(value_of(report.measures, "auc"), value_of(wanted.measures, "auc"));
    };
    for (const int threads : {1, 2, 3, 7})
      expect_same({"engine.inline_floats=0"}, {.threads = threads});
    for (const std::uint64_t seed : {1, 2, 3})
      expect_same({"engine.inline_floats=0"},
                  {.executor = std::make_shared<TestExecutor>(seed, 3)});
    expect_same({"schedule.look_ahead=0"}, {});
    expect_same({"schedule.look_ahead=5"}, {.threads = 2});
    if (replicas == "2") expect_same({"strategy.hosts=2", "strategy.sharding=mod"}, {.threads = 2});
    for (const SimdLevel level : usable_levels()) {
      setenv("EMBERTABLE_SIMD", std::string(to_string(level)).c_str(), 1);
      expect_same({}, {});
      unsetenv("EMBERTABLE_SIMD");
    }
  }
}

TEST_F(CtrJob, ItsDigestCoversTheDenseLayers) {
  const std::vector<Change> frozen = {"optimizer.learning_rate=1e-30", "schedule.epochs=1"};
  std::vector<Change> faster = frozen;
  faster.push_back("model.dense.learning_rate=0.06");
  EXPECT_NE(run(frozen).digest, run(faster).digest);
}

TEST_F(CtrJob, GoesOnInTheMiddleOfAnEpoch) {
  for (const std::string pipelined : {"false", "true"}) {
    const Job job = parse_job(kClickJob, "clicks.toml",
                              {"schedule.epochs=2", "schedule.pipelined=" + pipelined});
    const TrainReport whole = train_in(files_, job);
    for (const int after : {1, 17, 40}) {
      const std::string out = files_.path(pipelined + std::to_string(after));
      StopAfter stop(after);
      EXPECT_TRUE(train_in(files_, job, {.out = out, .stop = [&] { return stop.now.load(); }}, stop)
                      .interrupted);
      const TrainReport rest = train_in(files_, job, {.out = out, .resume = true, .threads = 2});
      EXPECT_EQ(rest.digest, whole.digest);
      EXPECT_EQ(value_of(rest.measures, "logloss"), value_of(whole.measures, "logloss"));
    }
  }
}

TEST_F(CtrJob, IsEvaluatedAsItWasMeasured) {
  const std::string out = files_.path("out");
  const TrainReport report = run({"schedule.epochs=1"}, {.out = out});
  const Evaluation evaluation = evaluate(out, {.data_root = files_.path()});
  EXPECT_EQ(value_of(evaluation.measures, "logloss"), value_of(report.measures, "logloss"));
  EXPECT_EQ(value_of(evaluation.measures, "auc"), value_of(report.measures, "auc"));
  const CallerState state = read_saved_state(out).caller;
  EXPECT_EQ(state.tensors.at("model.layer1.weight").shape, (std::vector<std::int64_t>{9, 12}));
}

std::string refused_clicks(const std::vector<Change>& changes,
                           const std::string& text = kClickJob) {
  try {
    parse_job(text, "clicks.toml", changes);
  } catch (const ValueError& error) {
    return error.what();
  }
  return "";
}

TEST(CtrSpec, SaysWhatDoesNotFit) {
  EXPECT_THAT(refused_clicks({"model.linear=[\"a\", \"b_weight\"]"}),
              HasSubstr("model.linear must name features of dim 1, got \"a\" of dim 4"));
  EXPECT_THAT(refused_clicks({"model.deep=[\"a\", \"c\"]"}),
              HasSubstr("model.deep must be a list of features (a, b, tag, a_weight, b_weight)"));
  EXPECT_THAT(refused_clicks({"model.deep=[\"a\", \"b\"]"}),
              HasSubstr("must use every feature, got none for \"tag\""));
  EXPECT_THAT(refused_clicks({"model.hidden=[8, 0]"}),
              HasSubstr("model.hidden must be sizes of layers, integers from 1 to 4096"));
  EXPECT_THAT(refused_clicks({"model.hidden=[]"}),
              HasSubstr("model.hidden must be at least one size of a layer"));
  EXPECT_THAT(refused_clicks({"model.regularization=-1"}),
              HasSubstr("model.regularization must be at least 0, got -1"));
  EXPECT_THAT(refused_clicks({"model.dense.learning_rate=-1"}),
              HasSubstr("model.dense.learning_rate must be at least 0, got -1"));
  EXPECT_THAT(refused_clicks({"model.dense.momentum=1"}),
              HasSubstr("model.dense has no key 'momentum'"));
}

TEST_F(CtrJob, RefusesLabelsBetweenItsTwo) {
  files_.write("clicks.csv", "click,a,b,tags\n0.5,1,1,t\n0.5,1,2,t\n0.5,1,3,t\n");
  try {
    run();
    FAIL();
  } catch (const ValueError& error) {
    EXPECT_THAT(error.what(), HasSubstr("clicks.csv:2:1: 'click' must be 0 or 1, got '0.5'"));
  }
}

/// Whether x * y > 0, which no column tells alone; x is missing in some records, y is large.
class CtrNumbers : public testing::Test {
 protected:
  static constexpr const char* kJob = R"(
[data]
file = "points.csv"
label = "inside"
numbers = ["x", "y"]
[ids.kind]
column = "kind"
keys = "string"
[model]
kind = "ctr"
hidden = [16]
[schedule]
batch = 64
epochs = 12
[split]
train_on_validation = false
)";

  explicit CtrNumbers(double scale = 1) { write("points.csv", scale); }

  void write(const std::string& name, double scale, bool labels = true) {
    std::string text = labels ? "inside,kind,x,y\n" : "kind,x,y\n";
    for (std::uint64_t i = 0; i < 2000; ++i) {
      const RandomRow random(3, i);
      const double x = 2 * uniform_double(random.bits(0)) - 1;
      const double y = 2000 * uniform_double(random.bits(1)) - 1000;
      if (labels) text += x * y > 0 ? "1," : "0,";
      text += fmt::format("k{},", random.bits(2) % 3);
      text += i % 50 == 7 ? ","
                          : fmt::format("{},", scale * static_cast<double>(static_cast<float>(x)));
      text += fmt::format("{}\n", static_cast<float>(y));
    }
    files_.write(name, text);
  }
  TrainReport run(const std::vector<Change>& changes = {}, const TrainOptions& options = {}) {
    return train_in(files_, parse_job(kJob, "points.toml", changes), options);
  }
  TemporaryFiles files_;
};

TEST_F(CtrNumbers, TellWhatNoIdTells) { EXPECT_GT(value_of(run().measures, "auc"), 0.95); }

TEST_F(CtrNumbers, HaveTheMeanZeroAndTheDeviationOneInWhatTrains) {
  files_.write("points.csv",
               "inside,kind,x,y,when\n1,a,1,5,1\n0,a,,5,2\n1,a,4,5,3\n0,a,1,5,4\n1,b,100,7,5\n");
  // The first four train: x has the mean 2 and the deviation sqrt(2), y is always 5.
  const std::string out = files_.path("out");
  run({"split.time=when", "split.test=0.2", "split.validation=0", "split.train_on_validation=true"},
      {.out = out});
  const DenseTensor saved = read_saved_state(out).caller.tensors.at("numbers");
  std::vector<double> values(4);
  ASSERT_EQ(saved.bytes.size(), sizeof(double) * values.size());
  std::memcpy(values.data(), saved.bytes.data(), saved.bytes.size());
  EXPECT_THAT(saved.shape, testing::ElementsAre(2, 2));
  EXPECT_THAT(values, testing::ElementsAre(2, 5, std::sqrt(2.0), 0));
}

TEST_F(CtrNumbers, GiveTheSameBitsWhereverTheyAreComputed) {
  const std::string digest = run().digest;
  EXPECT_EQ(run({}, {.threads = 3}).digest, digest);
  EXPECT_EQ(run({"strategy.hosts=2", "strategy.replicas=2"}).digest,
            run({"strategy.replicas=2"}).digest);
  EXPECT_EQ(run({"schedule.look_ahead=3"}).digest, digest);
}

TEST_F(CtrNumbers, DoNotDependOnTheUnit) {
  const TrainReport metres = run();
  write("points.csv", 1024);  // a power of two changes no bit of a standardised number
  EXPECT_EQ(run().digest, metres.digest);
}

TEST_F(CtrNumbers, DoNotDependOnWhereTheyBegin) {
  const auto digest_from = [&](std::int64_t begin) {
    std::string text = "inside,kind,x,y\n";
    for (std::int64_t i = 0; i < 600; ++i)
      text += fmt::format("{},a,{},1\n", i % 60 < 30 ? 1 : 0, begin + i % 64);
    files_.write("points.csv", text);
    return run({"schedule.epochs=2"}).digest;
  };
  EXPECT_EQ(digest_from(1'700'000'000), digest_from(0));
}

TEST_F(CtrNumbers, GoOnWithTheSameBitsAndPredictThem) {
  const std::string out = files_.path("out");
  const TrainReport whole = run();
  StopAfter stop(50);
  TrainOptions options{.out = out, .resume = true, .threads = 1};
  options.stop = [&] { return stop.now.load(); };
  EXPECT_TRUE(train_in(files_, parse_job(kJob, "points.toml"), options, stop).interrupted);
  const TrainReport rest = run({}, {.out = out, .resume = true});
  EXPECT_EQ(rest.digest, whole.digest);
  write("new.csv", 1, false);
  Scores scores;
  const Prediction done =
      predict(out, {.rows = {.path = files_.path("new.csv")}, .threads = 1}, scores);
  EXPECT_EQ(done.counts.rows, 2000);
  // The validation part of what was trained on has the measure that its predictions give.
  std::vector<float> logits, labels;
  const std::vector<float> all = scores.numbers("logit");
  const DataSet data = read_data(
      dynamic_cast<const RecordsModelSpec&>(*parse_job(kJob, "points.toml").model).records(),
      {.root = files_.path()});
  for (std::int64_t s = 0; s < data.samples.size(); ++s) {
    if (data.part[s] != Part::kValidation) continue;
    logits.push_back(all[s]);
    labels.push_back(data.samples.label(s));
  }
  EXPECT_EQ(log_loss(logits, labels), value_of(rest.measures, "logloss"));
}

TEST_F(CtrNumbers, AreForModelsThatTakeThem) {
  EXPECT_THAT(refusal<ValueError>("", [&] { run({"model.hidden=[]"}); }),
              HasSubstr("model.hidden must be at least one size of a layer"));
  EXPECT_THAT(refusal<ValueError>("",
                                  [&] {
                                    parse_job(R"(
[data]
file = "a.csv"
label = "r"
range = [1, 5]
numbers = ["age"]
[ids.user]
column = "u"
[ids.item]
column = "i"
[model]
kind = "mf"
)",
                                              "mf.toml");
                                  }),
              HasSubstr("data.numbers must be left out: mf predicts from ids alone"));
}

}  // namespace
}  // namespace embertable::jobs
