// Threads that meet at the queues: they wait for each other, not for ever, and nobody sleeps while
// there is something to do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <optional>
#include <random>
#include <stdexcept>
#include <thread>

#include "base/interruption.h"
#include "engine/schedule/rendezvous.h"
#include "engine/schedule/schedule.h"
#include "testing/await_sleep.h"
#include "testing/engine/batches.h"
#include "testing/executor.h"

namespace embertable {
namespace {

using namespace engine_fixture;  // NOLINT: the vocabulary of these tests
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::AnyOf;
using testing::Each;
using testing::HasSubstr;

constexpr seconds kLong{60};    ///< far beyond what a test takes: nobody may run into it
constexpr seconds kPrompt{30};  ///< less than that, and enough for any machine

StrategyPtr strategy_with(milliseconds timeout, std::int32_t replicas = 1,
                          std::shared_ptr<Executor> executor = make_inline_executor()) {
  return make_strategy(
      {.replicas_per_host = replicas, .executor = std::move(executor), .timeout = timeout});
}

/// One table of `rows` ones-wide rows of zeros, SGD 1, queues of `capacity`.
Embedding engine_of(StrategyPtr strategy, std::int32_t capacity, std::int64_t rows = 2) {
  EmbeddingOptions options;
  options.queue_capacity = capacity;
  options.tuning.inline_floats = 0;
  return Embedding(one_zero_table(rows, 1), sgd(1), std::move(strategy), options);
}

const Ids kZero = {0};
Batch zero() { return batch_of(DenseIds{kZero, {}}); }

void train_oldest(Embedding& engine) {
  const Activations activations = engine.dequeue({.timeout = kLong});
  engine.apply_gradients(Gradients(activations, filled(1)).all());
}

template <class Call>
std::chrono::steady_clock::duration time_of(Call call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  return std::chrono::steady_clock::now() - begin;
}

/// A thread that makes one call, of which one can see that it waits.
class Caller {
 public:
  explicit Caller(std::function<void()> call)
      : thread_([this, call = std::move(call)] {
          number_ = this_thread();
          error_ = refusal<StateError>(call);
        }) {}
  ~Caller() {
    if (thread_.joinable()) thread_.join();
  }

  void await_sleep() const { embertable::await_sleep(number_); }

  /// What the call threw, or "".
  std::string result() {
    thread_.join();
    return error_;
  }

 private:
  std::atomic<pid_t> number_ = -1;
  std::string error_;
  std::thread thread_;
};

void pause(std::minstd_rand& dice) {
  if (dice() % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(dice() % 400));
}

TEST(EngineQueues, OneThreadAloneIsToldAtOnce) {
  Embedding engine = engine_of(strategy_with(kLong), 2);
  engine.build(1);
  const auto took = time_of([&] {
    EXPECT_THAT(refusal<StateError>([&] { engine.dequeue(); }),
                AllOf(HasSubstr("replica 0"), HasSubstr("timeout")));
    EXPECT_THROW(engine.replica(0).dequeue(), StateError);
    for (int i = 0; i < 2; ++i) engine.enqueue(zero());
    EXPECT_THAT(refusal<StateError>([&] { engine.enqueue(zero()); }),
                AllOf(HasSubstr("replica 0"), HasSubstr("full"), HasSubstr("2 batches")));
    EXPECT_THROW(engine.replica(0).enqueue(zero()), StateError);
  });
  EXPECT_LT(took, kPrompt);
  for (int i = 0; i < 2; ++i) train_oldest(engine);
  EXPECT_EQ(row(engine, "t", 0, 1), F{-2});
}

TEST(EngineQueues, ATimeoutOfTheCallIsWaitedOut) {
  Embedding engine = engine_of(strategy_with(kLong, 2), 1);
  engine.build(1);
  std::string text;
  auto took = time_of(
      [&] { text = refusal<StateError>([&] { engine.dequeue({.timeout = milliseconds(40)}); }); });
  EXPECT_GE(took, milliseconds(40));
  EXPECT_LT(took, kPrompt);
  EXPECT_THAT(text, AllOf(HasSubstr("40 ms"), HasSubstr("replica 0, replica 1")));
  engine.replica(1).enqueue(zero());
  took = time_of([&] {
    text = refusal<StateError>(
        [&] { engine.replica(1).enqueue(zero(), {.timeout = milliseconds(40)}); });
  });
  EXPECT_GE(took, milliseconds(40));
  EXPECT_LT(took, kPrompt);
  EXPECT_THAT(text, AllOf(HasSubstr("40 ms"), HasSubstr("replica 1"), HasSubstr("full")));
  EXPECT_THAT(refusal<StateError>([&] { engine.dequeue({.timeout = milliseconds(1)}); }),
              AllOf(HasSubstr("replica 0"), Not(HasSubstr("replica 1"))));
  EXPECT_THROW(engine.enqueue(zero(), {.timeout = milliseconds(-1)}), ValueError);
  EXPECT_THROW(engine.dequeue({.timeout = milliseconds(-1)}), ValueError);
  engine.replica(0).enqueue(zero(), {.timeout = milliseconds::max()});
  train_oldest(engine);
  EXPECT_EQ(row(engine, "t", 0, 1), F{-2});
}

TEST(EngineQueues, OnceAnotherThreadHasCalledTheStrategysTimeoutCounts) {
  Embedding engine = engine_of(strategy_with(milliseconds(40)), 1);
  std::thread([&] { engine.enqueue(zero()); }).join();
  std::string text;
  EXPECT_GE(time_of([&] { text = refusal<StateError>([&] { engine.enqueue(zero()); }); }),
            milliseconds(40));
  EXPECT_THAT(text, AllOf(HasSubstr("40 ms"), HasSubstr("full")));
  train_oldest(engine);
  EXPECT_GE(time_of([&] { text = refusal<StateError>([&] { engine.dequeue(); }); }),
            milliseconds(40));
  EXPECT_THAT(text, AllOf(HasSubstr("40 ms"), HasSubstr("no batch")));
  EXPECT_LT(time_of([&] {
              text = refusal<StateError>([&] { engine.dequeue({.timeout = milliseconds(0)}); });
            }),
            kPrompt);
  EXPECT_THAT(text, Not(HasSubstr("waited")));
}

TEST(EngineQueues, AThreadThatDidNotMakeTheEngineIsNotAlone) {
  Embedding engine = engine_of(strategy_with(kLong), 1);
  engine.build(1);
  Caller consumer([&] { train_oldest(engine); });
  consumer.await_sleep();
  engine.enqueue(zero());
  EXPECT_EQ(consumer.result(), "");
  EXPECT_EQ(engine.step(), 1);
}

TEST(EngineQueues, ProducersWaitForRoomAndConsumersForBatches) {
  for (const std::int32_t capacity : {1, 3}) {
    for (std::uint32_t seed = 1; seed <= 4; ++seed) {
      SCOPED_TRACE("capacity " + std::to_string(capacity) + ", seed " + std::to_string(seed));
      constexpr int kSteps = 60;
      Embedding engine = engine_of(strategy_with(kLong), capacity, kSteps);
      std::thread producer([&] {
        std::minstd_rand dice(static_cast<std::uint32_t>(test_seed(seed)));
        for (std::int64_t i = 0; i < kSteps; ++i) {
          const Ids id = {i};
          engine.enqueue(batch_of(DenseIds{id, {}}), {.timeout = kLong});
          pause(dice);
        }
      });
      while (!engine.built()) std::this_thread::yield();
      std::minstd_rand dice(static_cast<std::uint32_t>(test_seed(seed + 100)));
      for (int i = 0; i < kSteps; ++i) {
        train_oldest(engine);
        EXPECT_EQ(row(engine, "t", i, 1), F{-1});  // in the order of the calls
        pause(dice);
      }
      producer.join();
    }
  }
}

TEST(EngineQueues, EveryReplicaHasAProducerAndAConsumer) {
  constexpr std::int32_t kReplicas = 3;
  constexpr int kSteps = 40;
  Embedding engine = engine_of(strategy_with(kLong, kReplicas), 2, kReplicas);
  engine.build(1);
  std::vector<std::thread> threads;
  for (std::int32_t r = 0; r < kReplicas; ++r) {
    threads.emplace_back([&, r] {
      std::minstd_rand dice(
          static_cast<std::uint32_t>(test_seed(static_cast<std::uint64_t>(r) + 1)));
      const Ids id = {r};
      for (int i = 0; i < kSteps; ++i) {
        engine.replica(r).enqueue(batch_of(DenseIds{id, {}}), {.timeout = kLong});
        pause(dice);
      }
    });
    threads.emplace_back([&, r] {
      std::minstd_rand dice(
          static_cast<std::uint32_t>(test_seed(static_cast<std::uint64_t>(r) + 11)));
      Embedding::Replica mine = engine.replica(r);
      for (int i = 0; i < kSteps; ++i) {
        const Activations activations = mine.dequeue({.timeout = kLong});
        EXPECT_EQ(values(activations, 0), F{static_cast<float>(-i)});
        pause(dice);
        mine.apply_gradients(Gradients(activations, filled(1))[0]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(engine.step(), kSteps);
  EXPECT_EQ(variable(engine, "t", kReplicas, 1), F(kReplicas, -kSteps));
}

/// Whoever misses a wake-up runs into the timeout.
TEST(EngineQueues, ManyProducersAndConsumersMissNothing) {
  Embedding engine = engine_of(strategy_with(kLong), 2);
  engine.build(1);
  std::atomic<int> looked_up = 0;
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      std::minstd_rand dice(static_cast<std::uint32_t>(test_seed(t + 1)));
      for (int i = 0; i < 50; ++i) {
        engine.enqueue(zero(), {.training = false, .timeout = kLong});
        pause(dice);
      }
    });
    threads.emplace_back([&, t] {
      std::minstd_rand dice(static_cast<std::uint32_t>(test_seed(t + 21)));
      for (int i = 0; i < 50; ++i) {
        looked_up += engine.dequeue({.timeout = kLong}).replicas();
        pause(dice);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(looked_up, 150);
  EXPECT_THROW(engine.dequeue({.timeout = milliseconds(0)}), StateError);
}

TEST(EngineQueues, WhoWaitsKeepsNobodyFromWorking) {
  Embedding engine = engine_of(strategy_with(kLong), 1);
  engine.enqueue(zero());
  Caller producer([&] { engine.enqueue(zero()); });
  producer.await_sleep();
  EXPECT_EQ(row(engine, "t", 0, 1), F{0});
  engine.look_up(zero(), false);
  engine.assign_rows("t", kZero, F{5});
  engine.digest();
  train_oldest(engine);
  EXPECT_EQ(producer.result(), "");
  train_oldest(engine);

  Caller consumer([&] { train_oldest(engine); });
  consumer.await_sleep();
  EXPECT_EQ(row(engine, "t", 0, 1), F{3});
  engine.look_up(zero(), false);
  engine.digest();
  engine.enqueue(zero());
  EXPECT_EQ(consumer.result(), "");
  EXPECT_EQ(row(engine, "t", 0, 1), F{2});
}

TEST(EngineQueues, AWaitOfAllReplicasLeavesEachItsOwn) {
  Embedding engine = engine_of(strategy_with(kLong, 2), 1);
  const std::vector<Batch> both = {zero(), zero()};
  engine.enqueue(both, {.training = false});
  Caller all([&] { engine.enqueue(both, {.training = false, .timeout = kLong}); });
  Caller one([&] { engine.replica(0).enqueue(zero(), {.training = false, .timeout = kLong}); });
  all.await_sleep();
  one.await_sleep();
  engine.dequeue();  // `one` finds its queue full again, or `all` that the queues differ
  const std::string text = all.result();
  if (text.empty()) {
    engine.dequeue();
    EXPECT_EQ(one.result(), "");
  } else {
    EXPECT_THAT(text, HasSubstr("another number of batches"));
    EXPECT_EQ(one.result(), "");
  }
  engine.replica(1).enqueue(zero(), {.training = false});
  engine.dequeue();
}

/// Thrown to end a wait, as Ctrl-C does in Python.
struct Interrupted : std::runtime_error {
  Interrupted() : std::runtime_error("interrupted") {}
};
[[noreturn]] void interrupt() { throw Interrupted(); }

TEST(EngineQueues, AnInterruptionEndsAWaitAndLeavesTheQueueAsItWas) {
  Embedding engine = engine_of(strategy_with(kLong, 2), 1);
  const std::vector<Batch> both = {zero(), zero()};
  const auto interrupted = [](auto call) {
    const Interruption scope(interrupt);
    EXPECT_LT(time_of([&] { EXPECT_THROW(call(), Interrupted); }), kPrompt);
  };
  engine.enqueue(both, {.training = false});  // builds
  engine.dequeue();
  interrupted([&] { engine.dequeue({.timeout = kLong}); });  // for a batch
  engine.enqueue(both);
  interrupted([&] { engine.enqueue(both, {.timeout = kLong}); });  // for room
  interrupted([&] { engine.replica(0).dequeue(); });               // for the other replica
  const Activations activations = engine.dequeue();
  const Gradients gradients(activations, filled(1));
  interrupted([&] { engine.replica(1).apply_gradients(gradients.all()[1]); });
  engine.apply_gradients(gradients.all());
  EXPECT_EQ(engine.step(), 1);
  engine.enqueue(both);
  engine.dequeue();
}

/// Asks before every region.
class Asking final : public Executor {
 public:
  std::int32_t workers() const noexcept override { return 1; }
  void run(std::int64_t items, FunctionRef<void(const WorkItem&)> body) override {
    if (before) before();
    for (std::int64_t i = 0; i < items; ++i) body({i, -1, 0});
  }
  std::function<void()> before;
};

/// An engine whose every stage is a region: 5000 ids of 100 rows.
struct Regions {
  std::shared_ptr<Asking> executor = std::make_shared<Asking>();
  Ids ids;
  Embedding engine;

  explicit Regions(std::int32_t capacity) : engine(made(capacity)) {
    for (std::int64_t i = 0; i < 5000; ++i) ids.push_back(i % 100);
    engine.build(5000);
  }
  Batch batch() const { return batch_of(DenseIds{ids, {}}); }

 private:
  Embedding made(std::int32_t capacity) const {
    EmbeddingOptions options;
    options.queue_capacity = capacity;
    options.tuning = {.bucket_bytes = 16, .inline_floats = 0};
    return Embedding(one_zero_table(100, 4), sgd(1), strategy_with(kLong, 1, executor), options);
  }
};

TEST(EngineQueues, AFailureWakesAllWhoWait) {
  for (const bool consumes : {false, true}) {
    Regions regions(1);
    Embedding& engine = regions.engine;
    LookupResult result = engine.look_up(regions.batch());
    if (!consumes) engine.enqueue(regions.batch(), {.training = false});
    Caller waiting([&] {
      if (consumes) {
        engine.dequeue();
      } else {
        engine.enqueue(regions.batch(), {.training = false});
      }
    });
    waiting.await_sleep();
    regions.executor->before = [] { throw std::runtime_error("tired"); };
    const Gradients ones(result.activations, filled(1));
    EXPECT_THROW(engine.apply_gradients(std::move(result.token), ones.all()), std::runtime_error);
    EXPECT_THAT(waiting.result(), HasSubstr("tired"));
    EXPECT_THAT(refusal<StateError>([&] { engine.dequeue(); }), HasSubstr("tired"));
  }
}

/// Most of them wake when what stopped them is over.
TEST(EngineQueues, AStopReachesAllWhoWaitedAlthoughItIsOver) {
  engine::Schedule schedule({.replicas = 1, .features = 1, .capacity = 1, .timeout = kLong});
  schedule.open({0, 1}, std::nullopt);
  schedule.commit({0, 1}, false, "");
  std::deque<Caller> producers, consumers;
  for (int i = 0; i < 8; ++i) producers.emplace_back([&] { schedule.open({0, 1}, kPrompt); });
  for (Caller& producer : producers) producer.await_sleep();
  schedule.stop("tired");
  schedule.resume();
  for (Caller& producer : producers) EXPECT_EQ(producer.result(), "enqueue: tired");

  schedule.next_to_dequeue(false);
  schedule.dequeued();
  for (int i = 0; i < 8; ++i) {
    consumers.emplace_back([&] {
      std::optional<engine::Patience> patience;
      schedule.await_batches(kPrompt, patience);
    });
  }
  for (Caller& consumer : consumers) consumer.await_sleep();
  schedule.stop("tired");
  schedule.resume();
  for (Caller& consumer : consumers) EXPECT_EQ(consumer.result(), "dequeue: tired");
  schedule.open({0, 1}, std::nullopt);
  schedule.release({0, 1});
}

TEST(EngineQueues, AStopReachesAllWhoMeetAlthoughItIsOver) {
  constexpr std::int32_t kReplicas = 8;
  engine::Rendezvous rendezvous(kReplicas, kPrompt);
  std::atomic<int> met = 0;
  const auto meet = [&](std::int32_t replica) {
    rendezvous.meet(
        replica, "apply", [] {}, [&] { ++met; }, [] {});
  };
  std::deque<Caller> first, again;
  for (std::int32_t r = 1; r < kReplicas; ++r) first.emplace_back([&, r] { meet(r); });
  for (Caller& caller : first) caller.await_sleep();
  rendezvous.stop("tired");
  rendezvous.resume();
  EXPECT_EQ(refusal<StateError>([&] {
              rendezvous.stop("ill");
              meet(0);
            }),
            "apply: ill");
  rendezvous.resume();
  for (Caller& caller : first) EXPECT_THAT(caller.result(), AnyOf("apply: tired", "apply: ill"));
  EXPECT_EQ(met, 0);
  for (std::int32_t r = 1; r < kReplicas; ++r) again.emplace_back([&, r] { meet(r); });
  meet(0);
  for (Caller& caller : again) EXPECT_EQ(caller.result(), "");
  EXPECT_EQ(met, 1);
}

TEST(EngineQueues, AFailedLookupLeavesItsBatchToTheNext) {
  Regions regions(1);
  const std::thread::id main = std::this_thread::get_id();
  std::atomic<bool> tired = false;
  regions.executor->before = [&] {
    if (std::this_thread::get_id() != main && !tired.exchange(true)) throw StateError("tired");
  };
  const auto dequeue = [&] { regions.engine.dequeue(); };
  Caller first(dequeue), second(dequeue);
  first.await_sleep();
  second.await_sleep();
  regions.engine.enqueue(regions.batch(), {.training = false});
  EXPECT_EQ(first.result() + second.result(), "tired");
}

/// What the calls of two threads throw when the engine ends while they wait.
std::vector<std::string> results_at_the_end(std::unique_ptr<Embedding> engine,
                                            const std::function<void(Embedding&)>& one,
                                            const std::function<void(Embedding&)>& other) {
  Embedding& it = *engine;
  Caller first([&] { one(it); }), second([&] { other(it); });
  first.await_sleep();
  second.await_sleep();
  engine.reset();
  return {first.result(), second.result()};
}

TEST(EngineQueues, TheEndOfTheEngineWakesAllWhoWait) {
  auto engine = std::make_unique<Embedding>(engine_of(strategy_with(kLong, 2), 1));
  engine->enqueue(std::vector<Batch>{zero(), zero()});
  EXPECT_THAT(results_at_the_end(
                  std::move(engine), [](Embedding& it) { it.replica(0).enqueue(zero()); },
                  [](Embedding& it) { it.replica(0).dequeue(); }),  // replica 1 does not come
              Each(HasSubstr("at its end")));

  engine = std::make_unique<Embedding>(engine_of(strategy_with(kLong), 1));
  engine->build(1);
  EXPECT_THAT(results_at_the_end(
                  std::move(engine), [](Embedding& it) { it.dequeue(); },
                  [](Embedding& it) { it.replica(0).dequeue(); }),
              Each(HasSubstr("at its end")));
}

/// Nobody needs a timeout for another thread's enqueue: it comes to an end by itself.
TEST(EngineQueues, OfTwoThatEnqueueForOneReplicaTheSecondWaits) {
  Regions regions(2);
  Embedding& engine = regions.engine;
  std::atomic<bool> inside = false, go = false;
  regions.executor->before = [&] {
    inside = true;
    while (!go) std::this_thread::sleep_for(milliseconds(1));
  };
  const EnqueueOptions at_once = {.training = false, .timeout = milliseconds(0)};
  Caller first([&] { engine.enqueue(regions.batch(), at_once); });
  while (!inside) std::this_thread::sleep_for(milliseconds(1));
  Caller second([&] { engine.enqueue(regions.batch(), at_once); });
  second.await_sleep();
  Caller third([&] { engine.enqueue(regions.batch(), at_once); });
  third.await_sleep();
  go = true;
  EXPECT_EQ(first.result(), "");
  EXPECT_EQ(second.result(), "");
  EXPECT_THAT(third.result(), HasSubstr("full"));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(values(engine.dequeue(), 0), F(20000, 0));
}

std::int64_t scratch_bytes(const Embedding& engine) { return engine.memory().entries.back().bytes; }

TEST(EngineQueues, MemoryIsCountedWhileOthersEnqueue) {
  Regions regions(2);
  Embedding& engine = regions.engine;
  const std::int64_t before = scratch_bytes(engine);
  std::atomic<bool> inside = false, go = false;
  regions.executor->before = [&] {
    inside = true;
    while (!go) std::this_thread::sleep_for(milliseconds(1));
  };
  Caller producer([&] { engine.enqueue(regions.batch(), {.training = false}); });
  while (!inside) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_EQ(scratch_bytes(engine), before);
  go = true;
  EXPECT_EQ(producer.result(), "");
  EXPECT_GE(scratch_bytes(engine), before + 5000 * 4);  // a row's number for each id
  engine.dequeue();
}

TEST(EngineQueues, MemoryIsCountedWhileItGrows) {
  EmbeddingOptions options;
  options.variable_batch = true;
  Embedding engine(one_zero_table(1, 1), sgd(1), strategy_with(kLong), options);
  engine.build(1 << 16);
  const Ids zeros(1 << 16);
  constexpr int kBatches = 17;
  std::thread producer([&] {
    for (int i = 0; i < kBatches; ++i) {
      const DenseIds ids{std::span(zeros).first(std::size_t{1} << i), {}};
      engine.enqueue(batch_of(ids), {.training = false, .timeout = kLong});
    }
  });
  std::atomic<bool> done = false;
  std::thread consumer([&] {
    for (int i = 0; i < kBatches; ++i) engine.dequeue({.timeout = kLong});
    done = true;
  });
  while (!done) scratch_bytes(engine);
  producer.join();
  consumer.join();
  EXPECT_GE(scratch_bytes(engine), 4 << 16);  // a row's number for each id of the last
}

/// One replica failed alone: what the others have ahead of it goes, complete steps stay, also where
/// the queues are full.
TEST(EngineQueues, BatchesThatAReplicaLacksAreDropped) {
  const Ids own = {0}, other = {1};
  for (const std::int32_t capacity : {1, 2, 3}) {
    SCOPED_TRACE(capacity);
    Embedding engine = engine_of(strategy_with(kLong, 2), capacity);
    engine.build(1);
    const auto enqueue = [&](std::int32_t replica, const Ids& ids) {
      engine.replica(replica).enqueue(batch_of(DenseIds{ids, {}}));
    };
    EXPECT_EQ(engine.drop_unmatched_batches(), 0);
    for (int i = 0; i < capacity; ++i) enqueue(0, i == 0 && capacity > 1 ? own : other);
    if (capacity > 1) enqueue(1, own);
    EXPECT_EQ(engine.drop_unmatched_batches(), capacity > 1 ? capacity - 1 : 1);
    EXPECT_EQ(engine.drop_unmatched_batches(), 0);
    if (capacity > 1) train_oldest(engine);
    for (int i = 0; i < capacity; ++i) {
      enqueue(1, own);
      enqueue(0, own);
    }
    for (int i = 0; i < capacity; ++i) train_oldest(engine);
    EXPECT_EQ(engine.step(), capacity > 1 ? capacity + 1 : 1);
    const float steps = static_cast<float>(engine.step());
    EXPECT_EQ(variable(engine, "t", 2, 1), (F{-2 * steps, 0}));
  }
}

/// Makes a table of two rows, of zeros, for the replicas of so many hosts.
Embedding four_replicas(std::int32_t hosts, bool pipelined) {
  EmbeddingOptions options;
  options.queue_capacity = 4;
  options.pipeline_execution_with_tensor_core = pipelined;
  Embedding engine(one_zero_table(2, 1), sgd(1),
                   make_strategy({.hosts = hosts, .replicas_per_host = 4 / hosts}), options);
  engine.build(1);
  return engine;
}

TEST(EngineQueues, DequeuedBatchesAreDroppedAndAreNoSteps) {
  const Ids kept = {0}, dropped = {1};
  for (const std::int32_t hosts : {1, 2, 4}) {
    for (const bool pipelined : {false, true}) {
      SCOPED_TRACE(std::to_string(hosts) + (pipelined ? " hosts, pipelined" : " hosts"));
      Embedding engine = four_replicas(hosts, pipelined);
      EXPECT_EQ(engine.drop_dequeued_batches(), 0);
      for (const Ids* ids : {&kept, &dropped, &kept, &kept})
        engine.enqueue(std::vector<Batch>(4, batch_of(DenseIds{*ids, {}})));
      train_oldest(engine);
      engine.dequeue();
      EXPECT_THAT(refusal<StateError>([&] { engine.dequeue(), engine.dequeue(); }),
                  HasSubstr("apply_gradients first, or drop_dequeued_batches"));
      EXPECT_EQ(engine.drop_dequeued_batches(), pipelined ? 2 : 1);
      for (int i = 0; i < (pipelined ? 1 : 2); ++i) train_oldest(engine);
      EXPECT_EQ(engine.step(), pipelined ? 2 : 3);
      EXPECT_EQ(variable(engine, "t", 2, 1), (F{pipelined ? -8.0f : -12.0f, 0}));
    }
  }
}

TEST(EngineQueues, QueuedBatchesAreDroppedTheNewestFirst) {
  const Ids kept = {0}, dropped = {1};
  for (const std::int32_t hosts : {1, 2, 4}) {
    for (const bool pipelined : {false, true}) {
      SCOPED_TRACE(std::to_string(hosts) + (pipelined ? " hosts, pipelined" : " hosts"));
      Embedding engine = four_replicas(hosts, pipelined);
      const auto enqueue = [&](std::initializer_list<const Ids*> batches) {
        for (const Ids* ids : batches)
          engine.enqueue(std::vector<Batch>(4, batch_of(DenseIds{*ids, {}})));
      };
      EXPECT_EQ(refusal<ValueError>([&] { engine.drop_queued_batches(-1); }),
                "drop_queued_batches: steps must be >= 0, got -1");
      EXPECT_EQ(engine.drop_queued_batches(), 0);
      enqueue({&kept, &kept, &dropped});
      engine.replica(3).enqueue(batch_of(DenseIds{dropped, {}}));
      EXPECT_EQ(engine.drop_queued_batches(0), 0);  // only what the others lack
      EXPECT_EQ(engine.drop_queued_batches(1), 1);
      train_oldest(engine);  // the hosts ask each other for the rows of the step after it
      EXPECT_EQ(engine.drop_queued_batches(0), 0);
      train_oldest(engine);
      for (int round = 0; round < 3; ++round) {
        enqueue({&kept, &dropped, &dropped});
        train_oldest(engine);
        EXPECT_EQ(engine.queued_batches(), 2);
        EXPECT_EQ(engine.drop_queued_batches(5), 2);
        enqueue({&dropped});
        EXPECT_EQ(engine.drop_queued_batches(), 1);  // nobody has asked for its rows
        enqueue({&kept, &kept});
        train_oldest(engine);
        train_oldest(engine);
      }
      EXPECT_EQ(engine.step(), 11);
      EXPECT_EQ(variable(engine, "t", 2, 1), (F{-44, 0}));
    }
  }
}

TEST(EngineQueues, BatchesAreDroppedOnceTheStrategyHasDroppedTheTables) {
  const Ids ids = {0};
  const StrategyPtr strategy = make_strategy({.hosts = 2, .replicas_per_host = 1});
  Embedding engine(one_zero_table(2, 1), sgd(1), strategy);
  for (int step = 0; step < 2; ++step)
    engine.enqueue(std::vector<Batch>(2, batch_of(DenseIds{ids, {}})));
  engine.dequeue();  // the hosts ask each other for the rows of the step after it
  strategy->initialize();
  EXPECT_EQ(engine.drop_queued_batches(), 1);
}

TEST(EngineQueues, BatchesAreDroppedWhileAnotherThreadEnqueues) {
  for (const std::int32_t hosts : {1, 2}) {
    SCOPED_TRACE(std::to_string(hosts) + " hosts");
    EmbeddingOptions options;
    options.queue_capacity = 3;
    constexpr std::int64_t kRows = 64;
    constexpr std::int64_t kBatches = 600;
    Embedding engine(one_zero_table(kRows, 1), sgd(1),
                     make_strategy({.hosts = hosts, .replicas_per_host = 2 / hosts}), options);
    engine.build(1);
    std::atomic<bool> ended = false;
    std::thread feeder([&] {
      for (std::int64_t i = 0; i < kBatches; ++i) {
        const Ids ids = {i % kRows};
        engine.enqueue(std::vector<Batch>(2, batch_of(DenseIds{ids, {}})), {.timeout = kLong});
      }
      ended = true;
    });
    std::int64_t steps = 0, dropped = 0;
    while (!ended || engine.queued_batches() > 0) {
      if (engine.queued_batches() > 0) {
        train_oldest(engine);
        ++steps;
      }
      try {
        if (steps % 2 == 0) dropped += engine.drop_queued_batches();
      } catch (const StateError& error) {
        EXPECT_THAT(error.what(), HasSubstr("another thread enqueues a batch of"));
      }
    }
    feeder.join();
    EXPECT_EQ(steps + dropped, kBatches);
    float sum = 0;
    for (const float row : variable(engine, "t", kRows, 1)) sum += row;
    EXPECT_EQ(sum, -2.0f * static_cast<float>(steps));
  }
}

TEST(EngineQueues, WhoWaitsForRoomHasItOnceBatchesAreDropped) {
  Embedding engine = engine_of(strategy_with(kLong, 2), 1);
  engine.build(1);
  engine.replica(0).enqueue(zero());
  Caller producer([&] { engine.replica(0).enqueue(zero(), {.timeout = kLong}); });
  producer.await_sleep();
  EXPECT_EQ(engine.drop_unmatched_batches(), 1);
  EXPECT_EQ(producer.result(), "");
  engine.replica(1).enqueue(zero());
  train_oldest(engine);
  EXPECT_EQ(variable(engine, "t", 2, 1), (F{-2, 0}));
}

TEST(EngineQueues, NothingIsDroppedWhileAnotherThreadEnqueues) {
  Regions regions(2);
  std::atomic<bool> inside = false, go = false;
  regions.executor->before = [&] {
    inside = true;
    while (!go) std::this_thread::sleep_for(milliseconds(1));
  };
  Caller producer([&] { regions.engine.enqueue(regions.batch(), {.training = false}); });
  while (!inside) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_THAT(refusal<StateError>([&] { regions.engine.drop_unmatched_batches(); }),
              AllOf(HasSubstr("drop_unmatched_batches"), HasSubstr("replica 0")));
  go = true;
  EXPECT_EQ(producer.result(), "");
  EXPECT_EQ(values(regions.engine.dequeue(), 0), F(20000, 0));
}

TEST(EngineQueues, ACallOfTheEngineFromItsOwnEnqueueIsRefused) {
  Regions regions(2);
  std::string text;
  regions.executor->before = [&] {
    text =
        refusal<StateError>([&] { regions.engine.enqueue(regions.batch(), {.timeout = kLong}); });
  };
  regions.engine.enqueue(regions.batch(), {.training = false});
  regions.executor->before = nullptr;
  EXPECT_THAT(text, HasSubstr("already"));
  EXPECT_EQ(values(regions.engine.dequeue(), 0), F(20000, 0));
}

}  // namespace
}  // namespace embertable
