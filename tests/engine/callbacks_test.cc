// What functions of the caller's that throw, or call back, leave behind; and forks.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <atomic>
#include <functional>

#include "testing/engine/batches.h"
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
           [&] { engine.look_up(batch); }, [&] { engine.apply_gradients(ones.all()); },
           [&] { engine.replica(0).apply_gradients(ones[0]); }, [&] { engine.digest(); }}) {
    call = each;
    EXPECT_THROW(engine.apply_gradients(ones.all()), StateError);
    EXPECT_THROW(engine.replica(0).apply_gradients(ones[0]), StateError);
  }
  call = [&] { engine.enqueue(batch); };  // the next one may come at any time
  engine.apply_gradients(ones.all());
  call = nullptr;
  EXPECT_EQ(row(engine, "t", 1, 1), F{-1});
  EXPECT_EQ(values(engine.dequeue(), 0), F{-1});
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
      if (!let_through && countdown > 0 && --countdown == 0) {
        if (no_exception) throw 7;
        throw std::runtime_error("tired");
      }
      body({i, -1, 0});
    }
  }
  std::atomic<int> lets_through = 0;
  std::atomic<std::int64_t> countdown = 0;
  bool no_exception = false;  ///< but a number
};

TEST(EngineCallbacks, AnExecutorThatThrowsInALookupLeavesTheBatchInItsQueue) {
  const Samples50 samples;
  for (const std::int64_t item : {1, 2, 3, 4, 5, 6}) {
    SCOPED_TRACE(item);
    auto executor = std::make_shared<ThrowingExecutor>();
    Embedding engine(one_zero_table(100, 4), sgd(1), strategy_with(executor), finely_cut());
    train(engine, samples.batches(), filled(1));
    for (const bool pipelined : {false, true}) {
      engine.enqueue(samples.batches());
      executor->countdown = item;
      executor->no_exception = pipelined;
      EXPECT_ANY_THROW(engine.dequeue());
      EXPECT_EQ(executor->countdown, 0);
      const Activations activations = engine.dequeue();
      EXPECT_EQ(values(activations, 0), F(20000, pipelined ? -100.0f : -50.0f));
      engine.apply_gradients(Gradients(activations, filled(1)).all());
    }
    EXPECT_EQ(variable(engine, "t", 100, 4), F(400, -150));
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

/// The update that fails is that of the batch before; a restore makes the engine sound again.
TEST(EngineCallbacks, AnExecutorThatThrowsInAFlushLeavesABatchThatCanBeLookedUp) {
  const Samples50 samples;
  for (const std::int32_t hosts : {1, 2}) {
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
    executor->countdown = 1;
    EXPECT_THROW(engine.dequeue(), std::runtime_error);
    EXPECT_THROW(engine.dequeue(), StateError);
    engine.restore(directory.path());
    EXPECT_EQ(values(engine.dequeue(), 0), F(20000, 0));
  }
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
  const Samples50 samples;
  for (const std::int32_t hosts : {1, 2}) {
    for (const EmbeddingOptions& options : {finely_cut(), EmbeddingOptions()}) {
      auto engine = std::make_unique<Embedding>(one_zero_table(100, 4), sgd(1),
                                                strategy_with(make_thread_pool(2), hosts), options);
      engine->enqueue(samples.batches(hosts));
      EXPECT_EQ(in_a_fork([&] {
                  for (int i = 0; i < 2; ++i) {
                    if (!is_refused([&] { engine->dequeue(); })) return 1;
                    if (!is_refused([&] { engine->enqueue(samples.batches(hosts)); })) return 2;
                    if (!is_refused([&] { engine->replica(0).dequeue(); })) return 3;
                    if (!is_refused([&] { row(*engine, "t", 0, 4); })) return 4;
                    if (!is_refused([&] { engine->look_up(samples.batches(hosts)); })) return 5;
                  }
                  engine.reset();
                  return 0;
                }),
                0);
      EXPECT_EQ(values(engine->dequeue(), 0), F(20000, 0));
    }
  }
}

}  // namespace
}  // namespace embertable
