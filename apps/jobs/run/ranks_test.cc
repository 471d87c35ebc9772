// Jobs that several processes train together, here threads with an exchange each: they give what
// one process gives, and an error on one of them is one on all.
#include "apps/jobs/run/ranks.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <thread>

#include "apps/jobs/run/train.h"
#include "embertable/checkpoint.h"
#include "embertable/errors.h"
#include "testing/exchange/processes.h"
#include "testing/sanitized.h"
#include "testing/source_path.h"
#include "testing/tiny_clicks.h"
#include "testing/tiny_histories.h"
#include "testing/tiny_job.h"
#include "testing/tiny_words.h"
#include "testing/training_run.h"

namespace embertable::jobs {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// Data with more samples than a block has, so that a step has several blocks.
void write_data(const TemporaryFiles& files) {
  write_tiny_data(files);
  write_tiny_histories(files);
  std::string ratings = "user,item,rating\n", clicks = "click,site,user\n", text;
  for (int u = 0; u < 90; ++u) {
    for (int i = 0; i < 10; ++i) {
      ratings += std::to_string(100 + u) + "," + std::to_string(7 + 3 * i) + "," +
                 std::to_string(1 + (u * u + i) % 5) + "\n";
    }
  }
  for (int i = 0; i < 1200; ++i) {
    clicks += std::to_string(i * i % 3 % 2) + ",s" + std::to_string(i % 7) + "," +
              std::to_string(i % 5) + "\n";
  }
  for (int i = 0; i < 900; ++i) text += std::string(1, static_cast<char>('a' + i * i % 11)) + " ";
  files.write_compressed("ratings.csv.gz", ratings);
  files.write("tiny_clicks.csv", clicks);
  files.write("text.txt", text);
}

/// A kind of model with a job, whose step of `batch` samples is cut within blocks by any number of
/// processes that divides 12.
struct Kind {
  const char* name;
  const char* text;
  std::vector<Change> changes;
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {
      {"Mf", kTinyJob, {"schedule.batch=600"}},
      {"Ctr", kTinyClicks, {"schedule.batch=600", "schedule.epochs=2"}},
      {"Pairwise", kTinyPairs, {"schedule.batch=288"}},
      {"NextItem", kTinyChains, {"schedule.batch=600"}},
      {"Skipgram",
       kTinyWords,
       {"schedule.batch=24", "schedule.epochs=2", "model.run=8", "model.subsample=0",
        "optimizer.learning_rate=0.005"}},
  };
  return all;
}

Job job_of(const Kind& kind, const std::vector<Change>& more = {}) {
  std::vector<Change> changes = kind.changes;
  changes.emplace_back("strategy.replicas=12");
  changes.insert(changes.end(), more.begin(), more.end());
  return parse_job(kind.text, std::string(kind.name) + ".toml", changes);
}

/// Keeps what a run reports, and stops it after some steps.
class Watch final : public TrainObserver {
 public:
  explicit Watch(int stop_after = -1) : left_(stop_after) {}
  void stepped(const StepReport& step) override {
    losses.push_back(step.training.value);
    if (--left_ == 0) stop = true;
  }
  std::atomic<bool> stop = false;
  std::vector<double> losses;  ///< training measure after each step

 private:
  int left_;
};

/// What `train` returned or threw on one process.
struct End {
  TrainReport report;
  std::string error;
  bool is_lost = false;
};

using Exchanges = std::vector<std::shared_ptr<Exchange>>;

/// Runs train_one(host, exchange) on a thread for each exchange.
std::vector<End> on_each(
    const Exchanges& exchanges,
    const std::function<TrainReport(std::int32_t, const std::shared_ptr<Exchange>&)>& train_one) {
  std::vector<End> ends(exchanges.size());
  std::vector<std::thread> all;
  for (std::size_t host = 0; host < ends.size(); ++host) {
    all.emplace_back([&, host] {
      End& end = ends[host];
      try {
        end.report = train_one(static_cast<std::int32_t>(host), exchanges[host]);
      } catch (const std::exception& error) {
        end.error = error.what();
        end.is_lost = dynamic_cast<const HostLost*>(&error) != nullptr;
      }
    });
  }
  for (std::thread& one : all) one.join();
  return ends;
}

std::vector<std::string> errors_of(const std::vector<End>& ends) {
  std::vector<std::string> errors;
  for (const End& end : ends) errors.push_back(end.error);
  return errors;
}

class RanksTest : public testing::Test {
 protected:
  RanksTest() { write_data(files_); }

  TrainReport alone(const Job& job, Watch& watch, TrainOptions options = {}) const {
    options.threads = 1;
    options.stop = [&] { return watch.stop.load(); };
    return train_in(files_, job, options, watch);
  }

  /// Trains on several processes, and expects the same report on all.
  TrainReport together(std::int32_t processes, const Job& job, Watch& watch,
                       TrainOptions options = {}) const {
    options.stop = [&] { return watch.stop.load(); };
    const std::vector<End> ends =
        on_each(exchanges_of(processes), [&](std::int32_t host, auto exchange) {
          TrainOptions mine = options;
          mine.exchange = exchange;
          if (host != 0) mine.stop = nullptr;
          TrainObserver unused;
          return train_in(files_, job, mine, host == 0 ? watch : unused);
        });
    for (const End& end : ends) {
      EXPECT_EQ(end.error, "");
      EXPECT_EQ(end.report.digest, ends[0].report.digest);
      EXPECT_EQ(end.report.steps, ends[0].report.steps);
      EXPECT_EQ(end.report.interrupted, ends[0].report.interrupted);
      EXPECT_EQ(std::ssize(end.report.waited_seconds), processes);
      expect_equal(end.report.measures, ends[0].report.measures);
    }
    return ends[0].report;
  }

  static void expect_equal(const Measures& got, const Measures& expected) {
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i].value, expected[i].value);
  }

  /// What the processes throw when each trains a job of its own.
  std::vector<std::string> refusals(const std::vector<Job>& jobs,
                                    const TrainOptions& options = {}) const {
    return errors_of(on_each(exchanges_of(static_cast<std::int32_t>(jobs.size())),
                             [&](std::int32_t host, auto exchange) {
                               TrainOptions mine = options;
                               mine.exchange = exchange;
                               return train_in(files_, jobs[host], mine);
                             }));
  }

  TemporaryFiles files_;
};

class RanksOf : public RanksTest, public testing::WithParamInterface<int> {
 protected:
  const Kind& kind_ = kinds()[GetParam()];
};

TEST_P(RanksOf, GiveWhatOneProcessGives) {
  struct Where {
    std::int32_t processes, threads;
    const char* sharding;
  };
  for (const std::string pipelined : {"false", "true"}) {
    const std::vector<Change> same = {"schedule.pipelined=" + pipelined};
    Watch expected_watch;
    const TrainReport expected = alone(job_of(kind_, same), expected_watch);
    for (const Where& where :
         {Where{2, 1, "div"}, {2, 2, "mod"}, {3, 1, "mod"}, {4, 2, "div"}, {6, 1, "mod"}}) {
      SCOPED_TRACE(pipelined + " " + std::to_string(where.processes));
      Watch watch;
      const Job job = job_of(kind_, {same[0], std::string("strategy.sharding=") + where.sharding,
                                     "engine.inline_floats=" + std::to_string(where.threads - 1)});
      const TrainReport report = together(where.processes, job, watch, {.threads = where.threads});
      EXPECT_EQ(report.digest, expected.digest);
      expect_equal(report.measures, expected.measures);
      EXPECT_EQ(watch.losses, expected_watch.losses);
    }
  }
}

TEST_P(RanksOf, GoOnOnAnotherNumberOfProcesses) {
  for (const std::string pipelined : {"false", "true"}) {
    const Job job = job_of(kind_, {"schedule.pipelined=" + pipelined, "schedule.epochs=3"});
    Watch whole;
    const TrainReport expected = alone(job, whole);
    ASSERT_GT(expected.steps, 5);
    const TrainOptions options = {
        .out = files_.path("out" + pipelined), .resume = true, .threads = 1};
    Watch first(1), second(1), third(1), rest;
    EXPECT_TRUE(together(4, job, first, options).interrupted);
    EXPECT_TRUE(together(2, job, second, options).interrupted);
    EXPECT_TRUE(together(3, job, third, options).interrupted);
    const TrainReport report = alone(job, rest, options);
    EXPECT_EQ(first.losses.size() + second.losses.size() + third.losses.size() + rest.losses.size(),
              whole.losses.size());
    EXPECT_EQ(report.digest, expected.digest);
    expect_equal(report.measures, expected.measures);
    EXPECT_EQ(digest_checkpoint(options.out), digest_checkpoint(report.saved));
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, RanksOf, testing::Range(0, 5),
                         [](const auto& kind) { return std::string(kinds()[kind.param].name); });

TEST(RanksOfAnExample, GiveWhatOneProcessGives) {
  const std::string examples = source_path("examples/");
  std::vector<Change> changes = {"schedule.batch=4800", "strategy.replicas=24",
                                 "schedule.epochs=1"};
  if (kSanitized) changes.emplace_back("data.where.book_id=\"< 2000\"");  // a fifth of the ratings
  const Job job = read_job(examples + "jobs/goodbooks-genres.toml", changes);
  const auto train_it = [&](const std::shared_ptr<Exchange>& exchange) {
    TrainObserver silent;
    return train(job, {.data_root = examples + "data", .threads = 1, .exchange = exchange}, silent);
  };
  const TrainReport expected = train_it(nullptr);
  for (const End& end :
       on_each(exchanges_of(3), [&](std::int32_t, auto exchange) { return train_it(exchange); })) {
    EXPECT_EQ(end.error, "");
    EXPECT_EQ(end.report.digest, expected.digest);
    EXPECT_EQ(value_of(end.report.measures, "rmse"), value_of(expected.measures, "rmse"));
  }
}

TEST_F(RanksTest, KeepTheBestEpoch) {
  const Job job = job_of(
      kinds()[0], {"split.train_on_validation=false", "schedule.epochs=60", "schedule.patience=2",
                   "optimizer.learning_rate=0.05", "optimizer.decay=1", "model.regularization=0"});
  Watch whole;
  const TrainReport expected = alone(job, whole);
  ASSERT_GT(expected.best_epoch, 0);
  ASSERT_LT(expected.steps, 60 * 2);
  Watch first(static_cast<int>(expected.steps) / 2), rest;
  const TrainOptions options = {.out = files_.path("out"), .resume = true, .threads = 1};
  EXPECT_TRUE(together(4, job, first, options).interrupted);
  const TrainReport report = together(3, job, rest, options);
  EXPECT_EQ(report.best_epoch, expected.best_epoch);
  EXPECT_EQ(report.digest, expected.digest);
  expect_equal(report.measures, expected.measures);
}

TEST_F(RanksTest, StopAfterTheSameStepWhoeverIsAsked) {
  const Job job = job_of(kinds()[0], {"schedule.epochs=100000"});
  std::atomic<bool> stop = true;
  const std::vector<End> ends = on_each(exchanges_of(3), [&](std::int32_t host, auto exchange) {
    return train_in(files_, job, {.threads = 1, .exchange = exchange, .stop = [&stop, host] {
                                    return host == 2 && stop;
                                  }});
  });
  for (const End& end : ends) {
    EXPECT_EQ(end.error, "");
    EXPECT_TRUE(end.report.interrupted);
    EXPECT_EQ(end.report.steps, 1);
  }
}

TEST_F(RanksTest, OnlyTheFirstReports) {
  struct Counter final : TrainObserver {
    void started(const StartReport& start) override {
      ++events;
      hosts = start.job.strategy.hosts;
    }
    void stepped(const StepReport&) override { ++events; }
    void finished_epoch(const EpochReport&) override { ++events; }
    void saved(const SaveReport&) override { ++events; }
    void finished(const TrainReport&) override { ++events; }
    int events = 0, hosts = 0;
  } counters[2];
  const std::string out = files_.path("out");
  on_each(exchanges_of(2), [&](std::int32_t host, auto exchange) {
    return train_in(files_, job_of(kinds()[0]), {.out = out, .threads = 1, .exchange = exchange},
                    counters[host]);
  });
  EXPECT_GT(counters[0].events, 5);
  EXPECT_EQ(counters[0].hosts, 2);
  EXPECT_EQ(counters[1].events, 0);
  EXPECT_FALSE(std::filesystem::exists(out + ".cache"));
}

// What fails on one process is an error on all.

TEST_F(RanksTest, SayWhichKeysToSet) {
  const Job one = parse_job(kTinyJob, "tiny.toml", {});
  EXPECT_THAT(refusals({one, one, one}),
              testing::Each("strategy.replicas must be a multiple of the 3 processes that run the "
                            "job and divide schedule.batch (24), got 1; set "
                            "strategy.replicas = 3"));
  const Job odd = parse_job(kTinyJob, "tiny.toml", {"schedule.batch=25"});
  EXPECT_THAT(refusals({odd, odd}),
              testing::Each(HasSubstr("; set strategy.replicas = 2 and schedule.batch = 26")));
  const Job hosts = job_of(kinds()[0], {"strategy.hosts=4"});
  EXPECT_THAT(refusals({hosts, hosts}),
              testing::Each("strategy.hosts must be 1 or the 2 processes that run the job, got 4"));
  const Job patient =
      job_of(kinds()[0], {"schedule.patience=2", "split.train_on_validation=false"});
  EXPECT_THAT(refusals({patient, patient}), testing::Each(HasSubstr("without a run directory")));
}

TEST_F(RanksTest, TrainOneJobAndNoOther) {
  EXPECT_THAT(refusals({job_of(kinds()[0]), job_of(kinds()[0]), job_of(kinds()[0], {"seed=7"})}),
              testing::Each("hosts must have one job: host 2 has 'seed = 7', host 0 has "
                            "'seed = 1'"));
}

TEST_F(RanksTest, NameTheHostWhoseDataCannotBeRead) {
  const Job job = job_of(kinds()[0]);
  const auto errors = errors_of(on_each(exchanges_of(3), [&](std::int32_t host, auto exchange) {
    TrainObserver silent;
    return train(
        job,
        {.data_root = host == 1 ? "/nowhere" : files_.path(), .threads = 1, .exchange = exchange},
        silent);
  }));
  EXPECT_THAT(errors[0], AllOf(HasSubstr("host 1: "), HasSubstr("/nowhere/ratings.csv.gz")));
  EXPECT_THAT(errors[1], AllOf(HasSubstr("/nowhere/ratings.csv.gz"), Not(HasSubstr("host"))));
  EXPECT_EQ(errors[2], errors[0]);
}

TEST_F(RanksTest, NameTheHostThatHasOtherData) {
  const TemporaryFiles other;
  write_data(other);
  write_tiny_data(other);
  const auto errors = errors_of(on_each(exchanges_of(2), [&](std::int32_t host, auto exchange) {
    return train_in(host == 1 ? other : files_, job_of(kinds()[0]),
                    {.threads = 1, .exchange = exchange});
  }));
  EXPECT_THAT(errors, testing::Each(HasSubstr("hosts must have one data set: host 1 has '")));
}

TEST_F(RanksTest, NameTheHostThatDoesNotSeeTheRunDirectory) {
  const auto errors = errors_of(on_each(exchanges_of(2), [&](std::int32_t host, auto exchange) {
    return train_in(
        files_, job_of(kinds()[0]),
        {.out = files_.path(host == 1 ? "elsewhere" : "out"), .threads = 1, .exchange = exchange});
  }));
  EXPECT_THAT(errors[0], AllOf(HasSubstr("host 1: "), HasSubstr("elsewhere"),
                               HasSubstr("all hosts must share the file system of a run")));
}

TEST_F(RanksTest, RefuseADirectoryThatHoldsARunOnAll) {
  const TrainOptions options = {.out = files_.path("out"), .threads = 1};
  Watch watch;
  together(2, job_of(kinds()[0]), watch, options);
  EXPECT_THAT(refusals({job_of(kinds()[0]), job_of(kinds()[0])}, options),
              testing::Each(HasSubstr("; resume goes on with it")));
}

TEST_F(RanksTest, EndWithAnErrorOfTheFirstOnesObserver) {
  struct Failing final : TrainObserver {
    void finished(const TrainReport&) override { throw std::runtime_error("no paper"); }
  } failing;
  const auto errors = errors_of(on_each(exchanges_of(3), [&](std::int32_t, auto exchange) {
    return train_in(files_, job_of(kinds()[0]), {.threads = 1, .exchange = exchange}, failing);
  }));
  EXPECT_THAT(errors, testing::ElementsAre("no paper", "host 0: no paper", "host 0: no paper"));
}

/// Runs work on the calling thread, up to a number of times.
class TiredExecutor final : public Executor {
 public:
  explicit TiredExecutor(int runs) : left_(runs) {}
  std::int32_t workers() const noexcept override { return 1; }
  void run(std::int64_t items, FunctionRef<void(const WorkItem&)> body) override {
    if (--left_ < 0) throw std::runtime_error("no thread");
    for (std::int64_t i = 0; i < items; ++i) body({.index = i});
  }

 private:
  int left_;
};

TEST_F(RanksTest, NameTheHostThatFailsAnywhere) {
  const Job job = job_of(kinds()[0], {"engine.inline_floats=0", "schedule.pipelined=true"});
  bool finished = false;
  int failures = 0;
  for (int runs = 0; !finished; ++runs, ++failures) {
    SCOPED_TRACE(runs);
    const TrainOptions options = {.out = files_.path("out" + std::to_string(runs))};
    const auto errors = errors_of(on_each(exchanges_of(3), [&](std::int32_t host, auto exchange) {
      TrainOptions mine = options;
      mine.exchange = exchange;
      mine.executor = std::make_shared<TiredExecutor>(host == 1 ? runs : 1 << 30);
      return train_in(files_, job, mine);
    }));
    finished = errors[1].empty();
    if (finished) continue;
    EXPECT_THAT(errors[1], HasSubstr("no thread"));
    EXPECT_THAT(errors[0], AllOf(HasSubstr("host 1: "), HasSubstr("no thread")));
    EXPECT_THAT(errors[2], AllOf(HasSubstr("host 1: "), HasSubstr("no thread")));
  }
  EXPECT_GT(failures, 15);
}

/// An exchange whose deadline passes in some round. It throws Error.
template <class Error>
class LateExchange final : public Exchange {
 public:
  LateExchange(std::shared_ptr<Exchange> exchange, int rounds)
      : exchange_(std::move(exchange)), left_(rounds) {}
  std::int32_t host() const noexcept override { return exchange_->host(); }
  std::int32_t hosts() const noexcept override { return exchange_->hosts(); }
  void start(Channel channel, const Stage& stage, std::span<const ByteSpan> send) override {
    if (--left_ <= 0) throw Error("host 1 has not come: " + to_string(stage));
    exchange_->start(channel, stage, send);
  }
  void finish(Channel channel, std::span<ByteSpan> received) override {
    exchange_->finish(channel, received);
  }
  bool is_open(Channel channel) const noexcept override { return exchange_->is_open(channel); }
  GivenUp abort(std::string_view) override { throw Error("host 1 has not come"); }

 private:
  std::shared_ptr<Exchange> exchange_;
  int left_;
};

/// Notes the stages of its rounds, as errors would name them.
class NotedExchange final : public Exchange {
 public:
  explicit NotedExchange(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}
  std::int32_t host() const noexcept override { return exchange_->host(); }
  std::int32_t hosts() const noexcept override { return exchange_->hosts(); }
  void start(Channel channel, const Stage& stage, std::span<const ByteSpan> send) override {
    stages.push_back(to_string(stage));
    exchange_->start(channel, stage, send);
  }
  void finish(Channel channel, std::span<ByteSpan> received) override {
    exchange_->finish(channel, received);
  }
  bool is_open(Channel channel) const noexcept override { return exchange_->is_open(channel); }
  GivenUp abort(std::string_view reason) override { return exchange_->abort(reason); }

  std::vector<std::string> stages;

 private:
  std::shared_ptr<Exchange> exchange_;
};

TEST_F(RanksTest, MessagesOfAStepNameItsNumber) {
  for (const std::string pipelined : {"false", "true"}) {
    std::vector<std::shared_ptr<NotedExchange>> noted;
    Exchanges exchanges;
    for (const std::shared_ptr<Exchange>& one : exchanges_of(2))
      exchanges.push_back(noted.emplace_back(std::make_shared<NotedExchange>(one)));
    const Job job = job_of(kinds()[0], {"schedule.pipelined=" + pipelined, "schedule.epochs=1"});
    const std::vector<End> ends = on_each(exchanges, [&](std::int32_t, auto exchange) {
      return train_in(files_, job, {.out = files_.path("out" + pipelined), .exchange = exchange});
    });
    ASSERT_EQ(ends[0].error, "");
    ASSERT_GT(ends[0].report.steps, 1);
    for (const std::string what :
         {"row numbers", "rows", "results of blocks", "sums of gradients", "apply_gradients"}) {
      std::vector<std::string> expected, found;
      for (std::int64_t step = 1; step <= ends[0].report.steps; ++step)
        expected.push_back(what + " of step " + std::to_string(step));
      for (const std::string& stage : noted[0]->stages)
        if (std::find(expected.begin(), expected.end(), stage) != expected.end())
          found.push_back(stage);
      found.erase(std::unique(found.begin(), found.end()), found.end());
      EXPECT_EQ(found, expected) << pipelined;
      // Lookups that measure belong to no step.
      const bool measures = what == "row numbers" || what == "rows";
      EXPECT_EQ(testing::Value(noted[0]->stages, testing::Contains(what)), measures) << what;
    }
    EXPECT_THAT(noted[0]->stages,
                testing::Contains(fmt::format("measured values of step {}", ends[0].report.steps)));
  }
}

template <class Error>
class RanksThatAreLate : public RanksTest {};
// An exchange that is written in Python has errors of other classes.
using Errors = testing::Types<StateError, std::runtime_error>;
TYPED_TEST_SUITE(RanksThatAreLate, Errors);

TYPED_TEST(RanksThatAreLate, SayThatAHostIsLostWhereverItIsMissed) {
  const TemporaryFiles& files = this->files_;
  const TrainOptions options = {.out = files.path("out"), .resume = true, .threads = 1};
  bool finished = false;
  for (int round = 1; !finished; round += 7) {
    Exchanges late;
    for (const std::shared_ptr<Exchange>& one : exchanges_of(2))
      late.push_back(std::make_shared<LateExchange<TypeParam>>(one, round));
    const std::vector<End> ends = on_each(late, [&](std::int32_t, auto exchange) {
      TrainOptions mine = options;
      mine.exchange = exchange;
      return train_in(files, job_of(kinds()[0]), mine);
    });
    finished = ends[0].error.empty();
    for (const End& end : ends) {
      EXPECT_EQ(end.is_lost, !finished) << round << ": " << end.error;
      EXPECT_THAT(end.error, HasSubstr(finished ? "" : "host 1 has not come: "));
    }
  }
}

}  // namespace
}  // namespace embertable::jobs
