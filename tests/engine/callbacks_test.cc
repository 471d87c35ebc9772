// What functions of the caller's that throw, or call back, leave behind; and forks.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <latch>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "embertable/variables/sharded_variable.h"
#include "testing/engine/batches.h"
#include "testing/sanitized.h"
#include "testing/temporary_directory.h"

namespace embertable {
namespace {

using namespace engine_fixture;  // NOLINT: the vocabulary of these tests

/// Every step is cut into many items, none of them inline.
EmbeddingOptions finely_cut(bool pipelined = false) {
  EmbeddingOptions options;
  options.tuning = {.bucket_bytes = 16, .inline_floats = 0};
  options.pipeline_execution_with_tensor_core = pipelined;
  return options;
}

StrategyPtr strategy_with(std::shared_ptr<Executor> executor, std::int32_t hosts = 1) {
  StrategyOptions options;
  options.hosts = hosts;
  options.executor = std::move(executor);
  return make_strategy(options);
}

/// 5000 samples of one id each, 50 of every row of a table of 100.
struct Samples50 {
  Ids ids;
  Samples50() {
    for (std::int64_t i = 0; i < 5000; ++i) ids.push_back(i % 100);
  }
  std::vector<Batch> batches(std::int32_t replicas = 1) const {
    return std::vector<Batch>(replicas, batch_of(DenseIds{ids, {}}));
  }
};

/// A rate that throws while `fails` says so.
struct CallbackRate {
  bool fails = false;
  double value = 1;
  Optimizer sgd() {
    return Optimizer("sgd", LearningRate::dynamic([this] {
                       if (fails) throw std::runtime_error("no rate today");
                       return value;
                     }));
  }
};

TEST(EngineCallbacks, ARateIsNotAskedByAForwardWhoseUpdateIsPending) {
  const Samples50 samples;
  for (const std::int32_t hosts : {1, 2}) {
    CallbackRate rate;
    Embedding engine(one_zero_table(100, 4), rate.sgd(),
                     strategy_with(make_inline_executor(), hosts), finely_cut(true));
    train(engine, samples.batches(hosts), filled(1));
    rate.fails = true;
    engine.enqueue(samples.batches(hosts));
    const Activations activations = engine.dequeue();
    EXPECT_EQ(values(activations, 0), F(20000, 0));
    const Gradients ones(activations, filled(1));
    EXPECT_THROW(engine.apply_gradients(ones.all()), std::runtime_error);
    rate.fails = false;
    engine.apply_gradients(ones.all());
    EXPECT_EQ(variable(engine, "t", 100, 4), F(400, -100.0f * static_cast<float>(hosts)));
  }
}

TEST(EngineCallbacks, ARateIsRoundedAsTheLibraryRoundsWhateverTheThreadDoes) {
  CallbackRate rate;
  rate.value = 1e-40;
  Embedding engine(one_zero_table(2, 1), rate.sgd(), strategy_with(make_inline_executor()),
                   finely_cut(true));
  const Ids one = {1};
  train(engine, batch_of(DenseIds{one, {}}), filled(1));
  const unsigned int found = _mm_getcsr();
  _mm_setcsr(found | 0x8040);
  const F got = row(engine, "t", 1, 1);  // flushes
  _mm_setcsr(found);
  EXPECT_EQ(got, F{-1e-40f});
}

TEST(EngineCallbacks, OneThatCallsAStepIsRefusedInsteadOfWaitingForItself) {
  std::function<void()> call;
  const Optimizer optimizer("sgd", LearningRate::dynamic([&] {
                              if (call) call();
                              return 1.0;
                            }));
  Embedding engine(one_zero_table(2, 1), optimizer, strategy_with(make_inline_executor()));
  const Ids one = {1};
  const Batch batch = batch_of(DenseIds{one, {}});
  engine.enqueue(batch);
  const Activations activations = engine.dequeue();
  const Gradients ones(activations, filled(1));
  for (const std::function<void()>& each : std::initializer_list<std::function<void()>>{
           [&] { row(engine, "t", 1, 1); }, [&] { engine.dequeue(); },
           [&] { engine.enqueue(batch); }, [&] { engine.replica(0).enqueue(batch); },
           [&] { engine.look_up(batch); }, [&] { engine.apply_gradients(ones.all()); },
           [&] { engine.replica(0).apply_gradients(ones[0]); }, [&] { engine.digest(); }}) {
    call = each;
    EXPECT_THROW(engine.apply_gradients(ones.all()), StateError);
    EXPECT_THROW(engine.replica(0).apply_gradients(ones[0]), StateError);
  }
  call = nullptr;
  engine.apply_gradients(ones.all());
  EXPECT_EQ(row(engine, "t", 1, 1), F{-1});
}

/// Runs the items of every region on a thread of its own, one region after the other.
class OtherThread final : public Executor {
 public:
  std::int32_t workers() const noexcept override { return 1; }
  void run(std::int64_t items, FunctionRef<void(const WorkItem&)> body) override {
    const std::lock_guard lock(mutex_);
    std::thread([&] {
      for (std::int64_t i = 0; i < items; ++i) body({i, -1, 0});
    }).join();
  }

 private:
  std::mutex mutex_;
};

/// Makes every call that an engine refuses to its own functions, once, and counts the refusals.
class CallsBack {
 public:
  explicit CallsBack(const std::vector<Batch>& batches) : batches_(batches) {}

  void to(Embedding* engine, const std::filesystem::path& run) {
    engine_ = engine;
    run_ = run;
  }

  void operator()() {
    if (!engine_) return;
    Embedding& engine = *std::exchange(engine_, nullptr);
    F out(4);
    for (const std::function<void()>& call : std::initializer_list<std::function<void()>>{
             [&] { engine.build(5000); }, [&] { engine.memory(); }, [&] { engine.restore(run_); },
             [&] { engine.enqueue(batches_); }, [&] { engine.look_up(batches_); }}) {
      const std::string text = refusal<StateError>(call);
      EXPECT_NE(text.find("a function that the engine calls"), std::string::npos) << text;
    }
    for (const std::function<void()>& call : std::initializer_list<std::function<void()>>{
             [&] { engine.dequeue(); }, [&] { engine.replica(0).dequeue(); },
             [&] { engine.apply_gradients(Nested<Gradient>(Gradient::none())); },
             [&] { engine.replica(0).apply_gradients(Nested<Gradient>(Gradient::none())); },
             [&] { engine.save(run_); }, [&] { engine.digest(); },
             [&] { engine.read_rows("t", Ids{1}, out); },
             [&] { engine.assign_rows("t", Ids{1}, out); }}) {
      EXPECT_THROW(call(), StateError);  // or, in a build, because there are no tables yet
    }
    ++answered;
  }

  int answered = 0;

 private:
  const std::vector<Batch>& batches_;
  Embedding* engine_ = nullptr;
  std::filesystem::path run_;
};

/// An executor that calls back on the thread of the host that has a region.
class CallingExecutor final : public Executor {
 public:
  std::int32_t workers() const noexcept override { return 1; }
  void run(std::int64_t items, FunctionRef<void(const WorkItem&)> body) override {
    if (call && std::this_thread::get_id() != main_) call();
    for (std::int64_t i = 0; i < items; ++i) body({i, -1, 0});
  }
  std::function<void()> call;

 private:
  const std::thread::id main_ = std::this_thread::get_id();
};

TEST(EngineCallbacks, AnInitializerThatCallsItsEngineIsRefusedOnAnyThread) {
  const Samples50 samples;
  const std::vector<Batch> batches = samples.batches();
  for (const auto& executor :
       {make_inline_executor(), std::shared_ptr<Executor>(std::make_shared<OtherThread>())}) {
    const TemporaryDirectory directory;
    CallsBack calls_back(batches);
    const TablePtr table = make_table(
        {.vocabulary_size = 100,
         .dim = 4,
         .initializer = Initializer::function([&](const RowRange&, std::span<float> out) {
           calls_back();
           std::fill(out.begin(), out.end(), 3.0f);
         }),
         .optimizer = {},
         .combiner = Combiner::kSum,
         .name = "t"});
    Embedding engine(Nested<FeatureConfig>(feature(table)), sgd(1), strategy_with(executor));
    calls_back.to(&engine, directory.path());
    engine.build(5000);
    EXPECT_EQ(calls_back.answered, 1);
    EXPECT_EQ(row(engine, "t", 99, 4), F(4, 3));
  }
}

TEST(EngineCallbacks, ARuleThatCallsItsEngineIsRefusedOnAnyThread) {
  const Samples50 samples;
  for (const std::int32_t hosts : {1, 2}) {
    const std::vector<Batch> batches = samples.batches(hosts);
    for (const auto& executor :
         {make_inline_executor(), std::shared_ptr<Executor>(std::make_shared<OtherThread>())}) {
      const TemporaryDirectory directory;
      CallsBack calls_back(batches);
      std::mutex one_by_one;
      const CustomRule rule{.name = "caller",
                            .function = CustomRule::Rows([&](const CustomRow& row) {
                              const std::lock_guard lock(one_by_one);
                              calls_back();
                              row.row[0] -= row.gradient[0];
                            })};
      Embedding engine(one_zero_table(100, 4), Optimizer::custom(rule, 1),
                       strategy_with(executor, hosts), finely_cut());
      engine.enqueue(batches);
      const Activations activations = engine.dequeue();
      calls_back.to(&engine, directory.path());
      engine.apply_gradients(Gradients(activations, filled(1)).all());
      EXPECT_EQ(calls_back.answered, 1);
      EXPECT_EQ(row(engine, "t", 99, 4), (F{-50.0f * static_cast<float>(hosts), 0, 0, 0}));
    }
  }
}

TEST(EngineCallbacks, AnExecutorThatCallsItsEngineIsRefusedOnTheThreadOfAHost) {
  const Samples50 samples;
  const std::vector<Batch> batches = samples.batches(2);
  const TemporaryDirectory directory;
  CallsBack calls_back(batches);
  auto executor = std::make_shared<CallingExecutor>();
  Embedding engine(one_zero_table(100, 4), sgd(1), strategy_with(executor, 2), finely_cut());
  engine.enqueue(batches);
  calls_back.to(&engine, directory.path());
  executor->call = [&] { calls_back(); };
  train(engine, batches, filled(1));
  EXPECT_EQ(calls_back.answered, 1);
}

TEST(EngineCallbacks, ARuleMayCallAnotherEngine) {
  const Samples50 samples;
  Embedding other(one_zero_table(100, 4), sgd(1), strategy_with(make_inline_executor()));
  other.build(5000);
  int looked_up = 0;
  const CustomRule rule{.name = "caller", .function = CustomRule::Rows([&](const CustomRow&) {
                                            other.look_up(samples.batches(), false);
                                            ++looked_up;
                                          })};
  Embedding engine(one_zero_table(100, 4), Optimizer::custom(rule, 1),
                   strategy_with(std::make_shared<OtherThread>()), finely_cut());
  train(engine, samples.batches(), filled(1));
  EXPECT_EQ(looked_up, 100);
}

TEST(EngineCallbacks, OneThatDropsTheTablesOfItsStepIsRefused) {
  const Samples50 samples;
  StrategyPtr strategy = strategy_with(std::make_shared<OtherThread>());
  std::string text;
  const CustomRule rule{.name = "caller",
                        .function = CustomRule::Rows([&](const CustomRow&) {
                          text = refusal<StateError>([&] { strategy->initialize(); });
                        })};
  Embedding engine(one_zero_table(100, 4), Optimizer::custom(rule, 1), strategy, finely_cut());
  train(engine, samples.batches(), filled(1));
  EXPECT_NE(text.find("a function that the engine calls"), std::string::npos) << text;
}

TEST(EngineCallbacks, AnEnqueueOfARateIsRefusedWhileAnotherThreadWaitsForRoom) {
  std::function<void()> call;
  const Optimizer optimizer("sgd", LearningRate::dynamic([&] {
                              if (call) call();
                              return 1.0;
                            }));
  EmbeddingOptions options;
  options.queue_capacity = 1;
  Embedding engine(one_zero_table(2, 1), optimizer, strategy_with(make_inline_executor()), options);
  const Ids one = {1};
  const Batch batch = batch_of(DenseIds{one, {}});
  engine.enqueue(batch);
  const Activations activations = engine.dequeue();
  engine.enqueue(batch);
  std::thread waiting([&] { engine.enqueue(batch); });
  std::string text;
  call = [&] { text = refusal<StateError>([&] { engine.enqueue(batch); }); };
  engine.apply_gradients(Gradients(activations, filled(1)).all());
  EXPECT_NE(text.find("a function that the engine calls"), std::string::npos) << text;
  engine.dequeue();
  waiting.join();
}

TEST(EngineCallbacks, ALogThatThrowsLeavesTheGradientsToCome) {
  bool fails = true;
  EmbeddingOptions options;
  options.log = [&](std::string_view) {
    if (fails) throw std::runtime_error("no log today");
  };
  Embedding engine(one_zero_table(2, 1), sgd(1), strategy_with(make_inline_executor()), options);
  const Ids one = {1};
  engine.enqueue(batch_of(DenseIds{one, {}}));
  const Activations activations = engine.dequeue();
  EXPECT_THROW(engine.apply_gradients(Nested<Gradient>(Gradient::none())), std::runtime_error);
  fails = false;
  engine.apply_gradients(Gradients(activations, filled(1)).all());
  EXPECT_EQ(row(engine, "t", 1, 1), F{-1});
}

/// Throws before item `countdown` of the regions that come after the next `lets_through`.
class ThrowingExecutor final : public Executor {
 public:
  std::int32_t workers() const noexcept override { return 1; }
  void run(std::int64_t items, FunctionRef<void(const WorkItem&)> body) override {
    const bool let_through = lets_through.fetch_sub(1) > 0;
    for (std::int64_t i = 0; i < items; ++i) {
      if (!let_through && is_the_one()) {
        if (no_exception) throw 7;
        throw std::runtime_error("tired");
      }
      body({i, -1, 0});
    }
  }
  std::atomic<int> lets_through = 0;
  std::atomic<std::int64_t> countdown = 0;
  bool no_exception = false;  ///< but a number

 private:
  /// Counts down to 0, and no further where several hosts count at once.
  bool is_the_one() {
    std::int64_t left = countdown;
    while (left > 0 && !countdown.compare_exchange_weak(left, left - 1)) continue;
    return left == 1;
  }
};

TEST(EngineCallbacks, AnExecutorThatThrowsInALookupLeavesTheBatchInItsQueue) {
  const Samples50 samples;
  for (const std::int32_t hosts : {1, 2, 3}) {
    const auto step = 50.0f * static_cast<float>(hosts);
    for (const std::int64_t item : {1, 2, 3, 4, 5, 6}) {
      SCOPED_TRACE(std::to_string(hosts) + " hosts, item " + std::to_string(item));
      auto executor = std::make_shared<ThrowingExecutor>();
      Embedding engine(one_zero_table(100, 4), sgd(1), strategy_with(executor, hosts),
                       finely_cut());
      train(engine, samples.batches(hosts), filled(1));
      for (const bool training : {true, false, true}) {
        executor->no_exception = training;
        engine.enqueue(samples.batches(hosts), {.training = training});
        for (int attempt = 0; attempt < 2; ++attempt) {
          executor->countdown = training ? item : 1 + item % 3;  // without gradients there are 3
          EXPECT_ANY_THROW(engine.dequeue());
          EXPECT_EQ(executor->countdown, 0);
        }
        const Activations activations = engine.dequeue();
        EXPECT_EQ(values(activations, 0), F(20000, -step * static_cast<float>(engine.step())));
        if (training) engine.apply_gradients(Gradients(activations, filled(1)).all());
      }
      EXPECT_EQ(engine.step(), 3);
      EXPECT_EQ(variable(engine, "t", 100, 4), F(400, -3 * step));
    }
  }
}

/// Rows by div and by mod, several replicas of a host, a rule with slots, sums that are kept: all
/// as if nothing had failed.
TEST(EngineCallbacks, LookupsThatFailShowInNothingThatFollows) {
  const Samples50 samples;
  Ids others;
  for (const std::int64_t id : samples.ids) others.push_back((id * 7 + 3) % 100);
  for (const Sharding sharding : {Sharding::kDiv, Sharding::kMod}) {
    const auto digest_after = [&](bool fails) {
      auto executor = std::make_shared<ThrowingExecutor>();
      const StrategyPtr strategy = make_strategy(
          {.hosts = 2, .replicas_per_host = 2, .sharding = sharding, .executor = executor});
      Embedding engine(one_zero_table(100, 4), Optimizer("adagrad", 0.25), strategy, finely_cut());
      std::vector<Batch> batches = samples.batches(4);
      batches[1] = batches[2] = batch_of(DenseIds{others, {}});
      for (int step = 0; step < 3; ++step) {
        engine.enqueue(batches);
        executor->countdown = fails ? 3 + step : 0;
        if (fails) {
          EXPECT_THROW(engine.dequeue(), std::runtime_error);
        }
        const Activations activations = engine.dequeue();
        engine.apply_gradients(Gradients(activations, filled(0.5f)).all());
      }
      return engine.digest();
    };
    EXPECT_EQ(digest_after(true), digest_after(false));
  }
}

TEST(EngineCallbacks, SumsOfGradientsOutliveALookupThatFails) {
  const Samples50 samples;
  for (const std::int32_t hosts : {1, 2}) {
    auto executor = std::make_shared<ThrowingExecutor>();
    EmbeddingOptions options = finely_cut();
    options.variable_batch = true;
    Embedding engine(one_zero_table(100, 4), Optimizer("none", 1), strategy_with(executor, hosts),
                     options);
    engine.build(5000);
    train(engine, samples.batches(hosts), filled(1));
    const std::int64_t entries = engine.last_step().tables[0].entries;
    const Ids few(4000, 7);
    const std::vector<Batch> fewer(hosts, batch_of(DenseIds{few, {}}));
    engine.enqueue(fewer, {.training = false});
    executor->countdown = 1;
    EXPECT_THROW(engine.dequeue(), std::runtime_error);
    EXPECT_EQ(engine.gradient_sums("t").ids.size(), 100u);
    EXPECT_EQ(engine.last_step().tables[0].entries, entries);
  }
}

TEST(EngineCallbacks, AnExecutorThatThrowsInAnEnqueueLeavesTheQueueAsItWas) {
  const Samples50 samples;
  auto executor = std::make_shared<ThrowingExecutor>();
  Embedding engine(one_zero_table(100, 4), sgd(1), strategy_with(executor), finely_cut());
  executor->countdown = 2;
  EXPECT_NO_THROW(engine.build(5000));
  EXPECT_THROW(engine.enqueue(samples.batches()), std::runtime_error);
  EXPECT_THROW(engine.dequeue(), StateError);
  train(engine, samples.batches(), filled(1));
  EXPECT_EQ(variable(engine, "t", 100, 4), F(400, -50));
}

TEST(EngineCallbacks, AnExecutorThatThrowsInAnUpdateLeavesTheEngineFailed) {
  const Samples50 samples;
  for (const bool no_exception : {false, true}) {
    auto executor = std::make_shared<ThrowingExecutor>();
    Embedding engine(one_zero_table(100, 4), sgd(1), strategy_with(executor), finely_cut());
    engine.enqueue(samples.batches());
    const Activations activations = engine.dequeue();
    executor->countdown = 3;
    executor->no_exception = no_exception;
    EXPECT_ANY_THROW(engine.apply_gradients(Gradients(activations, filled(1)).all()));
    EXPECT_NE(refusal<StateError>([&] { engine.dequeue(); }).find("failed"), std::string::npos);
    EXPECT_THROW(engine.enqueue(samples.batches()), StateError);
    EXPECT_THROW(row(engine, "t", 0, 4), StateError);
  }
}

/// The update that fails is that of the batch before. Where rows may have changed, a restore makes
/// the engine sound again.
TEST(EngineCallbacks, AnExecutorThatThrowsInAFlushLeavesABatchThatCanBeLookedUp) {
  const Samples50 samples;
  using Seen = std::set<std::pair<std::int32_t, bool>>;  // hosts, whether the engine has failed
  Seen seen;
  for (const auto& [hosts, item] : {std::pair(1, 1), {2, 1}, {2, 9}}) {
    SCOPED_TRACE(std::to_string(hosts) + " hosts, item " + std::to_string(item));
    const TemporaryDirectory directory;
    auto executor = std::make_shared<ThrowingExecutor>();
    Embedding engine(one_zero_table(100, 4), sgd(1), strategy_with(executor, hosts),
                     finely_cut(true));
    engine.build(5000);
    engine.save(directory.path());
    train(engine, samples.batches(hosts), filled(1));
    engine.enqueue(samples.batches(hosts));
    engine.enqueue(samples.batches(hosts));
    executor->lets_through = hosts == 1 ? 1 : 2;  // the lookups of every host
    executor->countdown = item;
    EXPECT_THROW(engine.dequeue(), std::runtime_error);
    const bool failed = !refusal<StateError>([&] { engine.save(directory.path()); }).empty();
    if (failed) engine.restore(directory.path());
    EXPECT_EQ(values(engine.dequeue(), 0), F(20000, failed ? 0 : -50.0F * hosts));
    seen.emplace(hosts, failed);
  }
  EXPECT_EQ(seen, (Seen{{1, true}, {2, false}, {2, true}}));
}

TEST(EngineCallbacks, AnInitializerThatThrowsLeavesTheEngineUnbuilt) {
  bool fails = true;
  const TablePtr table =
      make_table({.vocabulary_size = 10,
                  .dim = 1,
                  .initializer = Initializer::function([&](const RowRange&, std::span<float> out) {
                    if (fails) throw std::runtime_error("no values today");
                    std::fill(out.begin(), out.end(), 3.0f);
                  }),
                  .optimizer = {},
                  .combiner = Combiner::kSum,
                  .name = "t"});
  Embedding engine(Nested<FeatureConfig>(feature(table)), sgd(1),
                   strategy_with(make_inline_executor()));
  const Ids one = {1};
  EXPECT_THROW(engine.enqueue(batch_of(DenseIds{one, {}})), std::runtime_error);
  EXPECT_FALSE(engine.built());
  EXPECT_FALSE(engine.output_shapes()[0].has_rank());
  fails = false;
  EXPECT_EQ(forward(engine, batch_of(DenseIds{one, {}})), F{3});
}

/// Both engines find the strategy free, and both make their tables before either has them.
TEST(EngineCallbacks, OfTwoEnginesThatAreBuiltOnAStrategyAtOnceOneIs) {
  const StrategyPtr strategy = strategy_with(make_inline_executor());
  std::atomic<int> making = 0;
  std::atomic<bool> together = true;
  const TablePtr table =
      make_table({.vocabulary_size = 10,
                  .dim = 1,
                  .initializer = Initializer::function([&](const RowRange&, std::span<float> out) {
                    for (++making; together && making < 2;) std::this_thread::yield();
                    std::fill(out.begin(), out.end(), 3.0f);
                  }),
                  .optimizer = {},
                  .combiner = Combiner::kSum,
                  .name = "t"});
  Embedding one(Nested<FeatureConfig>(feature(table)), sgd(1), strategy);
  Embedding other(Nested<FeatureConfig>(feature(table)), sgd(1), strategy);
  std::string told_one, told_other;
  std::thread thread([&] { told_one = refusal<StateError>([&] { one.build(1); }); });
  told_other = refusal<StateError>([&] { other.build(1); });
  thread.join();
  together = false;
  EXPECT_NE((told_one + told_other).find("holds an initialized engine already"), std::string::npos);
  Embedding& built = told_one.empty() ? one : other;
  Embedding& refused = told_one.empty() ? other : one;
  EXPECT_EQ(row(built, "t", 9, 1), F{3});
  EXPECT_FALSE(refused.built());
  EXPECT_FALSE(refused.output_shapes()[0].has_rank());
  strategy->initialize();
  const Ids nine = {9};
  EXPECT_EQ(forward(refused, batch_of(DenseIds{nine, {}})), F{3});
}

/// What `body` returns in a forked child; minus the signal that killed it.
int in_a_fork(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

bool is_refused(const std::function<void()>& call) {
  return refusal<StateError>(call).find("in the process that made it") != std::string::npos;
}

TEST(EngineCallbacks, InAForkEveryStepIsRefusedAndNothingWaits) {
  // Workers read the batch while the process forks.
  if (kSanitized) GTEST_SKIP() << "a sanitizer's allocator stays locked if a worker is in it";
  const Samples50 samples;
  for (const std::int32_t hosts : {1, 2}) {
    for (const EmbeddingOptions& options : {finely_cut(), EmbeddingOptions()}) {
      const TemporaryDirectory run;
      const StrategyPtr strategy = strategy_with(make_thread_pool(2), hosts);
      const Nested<Gradient> none(Gradient::none());
      auto engine = std::make_unique<Embedding>(one_zero_table(100, 4), sgd(1), strategy, options);
      engine->enqueue(samples.batches(hosts));
      EXPECT_EQ(in_a_fork([&] {
                  for (int i = 0; i < 2; ++i) {
                    if (!is_refused([&] { engine->dequeue(); })) return 1;
                    if (!is_refused([&] { engine->enqueue(samples.batches(hosts)); })) return 2;
                    if (!is_refused([&] { engine->replica(0).dequeue(); })) return 3;
                    if (!is_refused([&] { row(*engine, "t", 0, 4); })) return 4;
                    if (!is_refused([&] { engine->look_up(samples.batches(hosts)); })) return 5;
                    if (!is_refused([&] { engine->restore(run.path()); })) return 6;
                    if (!is_refused([&] { engine->save(run.path()); })) return 7;
                    if (!is_refused([&] { engine->build(5000); })) return 8;
                    if (!is_refused([&] { engine->memory(); })) return 9;
                    if (!is_refused([&] { engine->apply_gradients(none); })) return 10;
                    if (!is_refused([&] { engine->replica(0).apply_gradients(none); })) return 11;
                    if (!is_refused([&] { engine->assign_rows("t", Ids{0}, F(4)); })) return 12;
                    if (!is_refused([&] { engine->digest(); })) return 13;
                    if (!is_refused([&] { engine->sharded_variable("t"); })) return 14;
                    if (!is_refused([&] { strategy->initialize(); })) return 15;
                  }
                  engine.reset();
                  return 0;
                }),
                0);
      EXPECT_TRUE(std::filesystem::is_empty(run.path()));
      EXPECT_EQ(values(engine->dequeue(), 0), F(20000, 0));
    }
  }
}

/// The parent forks while another of its threads is in a step, and so holds the locks of one.
TEST(EngineCallbacks, InAForkOfARunningStepNothingWaitsForItsEnd) {
  std::latch in_step(1), forked(1);
  const Optimizer slow("sgd", LearningRate::dynamic([&] {
                         in_step.count_down();
                         forked.wait();
                         return 1.0;
                       }));
  const TemporaryDirectory run;
  const Ids one = {1};
  const Batch batch = batch_of(DenseIds{one, {}});
  auto engine = std::make_unique<Embedding>(one_zero_table(2, 1), slow,
                                            strategy_with(make_inline_executor()));
  std::optional<LookupResult> loan = engine->look_up(batch);
  engine->enqueue(batch);
  const Activations activations = engine->dequeue();
  std::thread step([&] { engine->apply_gradients(Gradients(activations, filled(1)).all()); });
  in_step.wait();
  EXPECT_EQ(in_a_fork([&] {
              if (!is_refused([&] { engine->restore(run.path()); })) return 1;
              if (!is_refused([&] { engine->save(run.path()); })) return 2;
              if (!is_refused([&] { engine->memory(); })) return 3;
              if (!is_refused([&] { engine->digest(); })) return 4;
              loan.reset();
              engine.reset();
              return 0;
            }),
            0);
  forked.count_down();
  step.join();
  EXPECT_EQ(row(*engine, "t", 1, 1), F{-1});
}

}  // namespace
}  // namespace embertable
