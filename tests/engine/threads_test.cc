// Threads that use one engine at once, as they should and as they should not.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <new>
#include <thread>

#include "testing/engine/batches.h"

namespace embertable {
namespace {

using namespace engine_fixture;  // NOLINT: the vocabulary of these tests

void unless_refused(const std::function<void()>& call) {
  try {
    call();
  } catch (const StateError&) {
    std::this_thread::yield();
  }
}

/// One id of each of the first 777 rows of 1000, nearly four times over.
Ids rows_777() {
  Ids ids;
  for (std::int64_t i = 0; i < 3000; ++i) ids.push_back(i % 777);
  return ids;
}

Embedding engine_on_two_threads() {
  StrategyOptions options;
  options.executor = make_thread_pool(2);
  EmbeddingOptions finely_cut;
  finely_cut.tuning = {.bucket_bytes = 256, .inline_floats = 0};
  return Embedding(one_zero_table(1000, 8), sgd(1), make_strategy(options), finely_cut);
}

TEST(EngineThreads, OneEnqueuesWhatAnotherLooksUpAndTrains) {
  constexpr int kSteps = 50;
  Embedding engine = engine_on_two_threads();
  const Ids ids = rows_777();
  const Batch batch = batch_of(DenseIds{ids, {}});
  std::thread producer([&] {
    for (int done = 0; done < kSteps;)
      unless_refused([&] { engine.enqueue(batch), ++done; });  // also builds, under the consumer
  });
  while (engine.step() < kSteps) {
    unless_refused([&] {
      const Activations activations = engine.dequeue();
      engine.apply_gradients(Gradients(activations, filled(1)).all());
    });
  }
  producer.join();
  EXPECT_EQ(row(engine, "t", 0, 8), F(8, -4.0f * kSteps));
  EXPECT_EQ(row(engine, "t", 776, 8), F(8, -3.0f * kSteps));
}

TEST(EngineThreads, TrainTheSameRowsWhicheverTablesTheyKeepTo) {
  constexpr int kSteps = 60;  // some of them go another way, by the clock
  std::vector<std::string> digests;
  for (const std::int32_t threads : {1, 2, 4}) {
    StrategyOptions options;
    options.executor = make_thread_pool(threads);
    const Structure list_of_four = Structure::list(std::vector<Structure>(4));
    std::vector<FeatureConfig> features;
    for (const std::int64_t rows : {1000, 40, 7, 300})
      features.push_back({.table = make_table({.vocabulary_size = rows,
                                               .dim = 8,
                                               .initializer = Initializer::uniform(-1, 1, 7),
                                               .name = "of " + std::to_string(rows)})});
    EmbeddingOptions finely_cut;
    finely_cut.tuning = {.bucket_bytes = 256, .inline_floats = 0};
    Embedding engine(Nested<FeatureConfig>(list_of_four, std::move(features)),
                     Optimizer("adagrad", 0.1), make_strategy(options), finely_cut);
    const Ids ids = rows_777();
    Ids few;
    for (const std::int64_t id : ids) few.push_back(id % 7);
    for (int i = 0; i < kSteps; ++i) {
      std::vector<FeatureIds> of_features(4, DenseIds{few, {}});
      of_features[0] = DenseIds{ids, {}};
      engine.enqueue(Batch{Nested<FeatureIds>(list_of_four, std::move(of_features))});
      const Activations activations = engine.dequeue();
      std::vector<Gradient> leaves;
      for (std::int64_t f = 0; f < activations.features(); ++f)
        leaves.push_back({activations(f).values, activations(f).shape});
      engine.apply_gradients(Nested<Gradient>(activations.structure(), std::move(leaves)));
    }
    digests.push_back(engine.digest());
  }
  EXPECT_EQ(digests[1], digests[0]);
  EXPECT_EQ(digests[2], digests[0]);
}

/// Threads that share a replica where each should have its own are refused, or wait until the
/// deadline: no step is taken with what another has left behind.
TEST(EngineThreads, TwoThreadsOfOneReplicaTakeNoStepTogether) {
  StrategyOptions options;
  options.replicas_per_host = 2;
  options.executor = make_inline_executor();
  options.timeout = std::chrono::milliseconds(2);
  Embedding engine(one_zero_table(2, 1), sgd(1), make_strategy(options));
  engine.build(3);
  const Ids ids = {1, 1, 1};
  std::vector<std::thread> threads;
  for (std::int32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Embedding::Replica replica = engine.replica(t % 2);
      for (int i = 0; i < 200; ++i) {
        unless_refused([&] { replica.enqueue(batch_of(DenseIds{ids, {}})); });
        unless_refused([&] {
          const Activations activations = replica.dequeue();
          replica.apply_gradients(Gradients(activations, filled(1))[0]);
        });
        F ones(3, 1);  // may die before the others come
        unless_refused([&] { replica.apply_gradients(Nested<Gradient>(Gradient{ones, {}})); });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(row(engine, "t", 1, 1), F{-6.0f * static_cast<float>(engine.step())});
}

TEST(EngineThreads, AnEngineMayGoWhileAnotherUsesItsTables) {
  for (int round = 0; round < 50; ++round) {
    const StrategyPtr strategy = make_strategy({.executor = make_inline_executor()});
    Embedding first(one_zero_table(8, 4), sgd(1), strategy);
    first.build(2);
    strategy->initialize();
    auto owner = std::make_unique<Embedding>(one_zero_table(8, 4), sgd(1), strategy);
    owner->build(2);
    const std::string digest = owner->digest();
    std::atomic<bool> reads = false, gone = false;
    std::thread reader([&] {
      while (!gone) {
        unless_refused([&] { EXPECT_EQ(first.digest(), digest); });
        reads = true;
      }
    });
    while (!reads) std::this_thread::yield();
    owner.reset();
    gone = true;
    reader.join();
    EXPECT_THROW(first.digest(), StateError);
  }
}

/// The timeout is for threads of the caller's. Host 0 has one id, host 1 so many that it is late.
TEST(EngineThreads, ASlowHostIsWaitedForLongerThanTheTimeout) {
  StrategyOptions options;
  options.hosts = 2;
  options.executor = make_inline_executor();
  options.timeout = std::chrono::milliseconds(1);
  Embedding engine(one_zero_table(300'000, 1), sgd(1), make_strategy(options), [] {
    EmbeddingOptions embedding;
    embedding.variable_batch = true;
    return embedding;
  }());
  engine.build(300'000);
  Ids many, one = {7};
  for (std::int64_t i = 0; i < 300'000; ++i) many.push_back((i * 7919) % 300'000);
  for (int step = 0; step < 2; ++step)
    train(engine, std::vector{batch_of(DenseIds{one, {}}), batch_of(DenseIds{many, {}})},
          filled(1));
  EXPECT_EQ(row(engine, "t", 7, 1), F{-4});
  EXPECT_EQ(row(engine, "t", 8, 1), F{-2});
}

/// Trains two hosts, each driven by a thread, until `enough`. Replica 0 nearly always waits.
int train_until(const std::atomic<bool>& enough, std::chrono::milliseconds timeout) {
  StrategyOptions options;
  options.hosts = 2;
  options.executor = make_inline_executor();
  options.timeout = timeout;
  Embedding engine(one_zero_table(2, 1), sgd(1), make_strategy(options));
  engine.build(1);
  const Ids one = {1};
  std::atomic<bool> ends = false;
  std::atomic<int> errors = 0;
  const auto drive = [&](std::int32_t r) {
    try {
      for (Embedding::Replica mine = engine.replica(r); !ends;) {
        // In short sleeps, since the end of one may pass while the process is stopped.
        for (int i = 0; r == 1 && i < 40; ++i)
          std::this_thread::sleep_for(std::chrono::milliseconds(5));
        mine.enqueue(batch_of(DenseIds{one, {}}));
        const Activations activations = mine.dequeue();
        if (r == 1) ends = enough.load();  // replica 0 waits for this one's gradients
        mine.apply_gradients(Gradients(activations, filled(1))[0]);
      }
    } catch (const StateError&) {
      ++errors;
    }
  };
  std::thread other(drive, 1);
  drive(0);
  other.join();
  return errors;
}

TEST(EngineThreads, AProcessThatIsStoppedForLongerThanTheTimeoutGoesOn) {
  void* const shared = mmap(nullptr, sizeof(std::atomic<bool>), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto& enough = *new (shared) std::atomic<bool>(false);
  constexpr std::chrono::milliseconds kTimeout(2000);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(train_until(enough, kTimeout));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  kill(child, SIGSTOP);
  std::this_thread::sleep_for(kTimeout + std::chrono::milliseconds(500));
  kill(child, SIGCONT);
  enough = true;
  int status = 0;
  waitpid(child, &status, 0);
  munmap(shared, sizeof(std::atomic<bool>));
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace embertable
