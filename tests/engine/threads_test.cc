// Threads that use one engine at once, as they should and as they should not.
#include <gtest/gtest.h>

#include <functional>
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

}  // namespace
}  // namespace embertable
