// The engine from ids to trained rows, on the fixture of the numbered cases.
#include <gtest/gtest.h>

#include <thread>

#include "testing/engine/fixture.h"

namespace embertable {
namespace {

using namespace engine_fixture;  // NOLINT: the vocabulary of these tests

struct Form {
  std::int32_t hosts = 1;
  std::int32_t replicas = 1;
  bool pipelined = false;
  Sharding sharding = Sharding::kDiv;
};

Embedding engine_of(const Form& setup, const Optimizer& optimizer = sgd(0.1)) {
  StrategyOptions options;
  options.hosts = setup.hosts;
  options.replicas_per_host = setup.replicas / setup.hosts;
  options.sharding = setup.sharding;
  options.executor = make_thread_pool(2);
  options.timeout = std::chrono::milliseconds(300);
  EmbeddingOptions embedding;
  embedding.pipeline_execution_with_tensor_core = setup.pipelined;
  return Embedding(features(), optimizer, make_strategy(options), embedding);
}

using F = std::vector<float>;

void train_with_ones(Embedding& engine, std::int32_t replicas) {
  const auto data = owned(replicas);
  engine.enqueue(ragged_batches(data));
  const Activations activations = engine.dequeue();
  std::vector<std::vector<float>> storage;
  storage.reserve(64);
  std::vector<Nested<Gradient>> gradients;
  for (std::int32_t r = 0; r < replicas; ++r)
    gradients.push_back(all(activations, storage, 1.0f, r));
  engine.apply_gradients(gradients);
}

TEST(Engine, OneForwardOfTheFixture) {
  Embedding engine = engine_of({});
  const OwnedBatch batch(0);
  engine.enqueue(batch.ragged());
  const Activations activations = engine.dequeue();
  EXPECT_EQ(values(activations, 0), (F{0, 1, 2, 3, 4, 6, 8, 10}));
  EXPECT_EQ(values(activations, 1), (F{4, 6, 8, 10, 4, 5, 6, 7}));
  EXPECT_EQ(values(activations, 2), (F{6, 7, 2, 3}));
}

TEST(Engine, OnesForEveryActivationTrainTheRowsOnce) {
  Embedding engine = engine_of({});
  train_with_ones(engine, 1);
  const OwnedBatch batch(0);
  engine.enqueue(batch.ragged(), {.training = false});
  const Activations after = engine.dequeue();
  const F expected = {-0.3f, 0.7f, 1.7f, 2.7f, 3.4f, 5.4f, 7.4f, 9.4f};
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(values(after, 0)[i], expected[i], 1e-6);
  EXPECT_EQ(engine.step(), 1);
}

F all_rows(const Embedding& engine, std::string_view variable, std::int64_t rows,
           std::int64_t width) {
  F out(static_cast<std::size_t>(rows * width));
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < rows; ++i) ids.push_back(i);
  engine.read_rows(variable, ids, out);
  return out;
}

TEST(Engine, HostsAndShardingNeverShow) {
  const auto trained = [](const Form& setup) {
    Embedding engine = engine_of(setup, Optimizer("adagrad", 0.1));
    for (int i = 0; i < 3; ++i) train_with_ones(engine, setup.replicas);
    F all = all_rows(engine, "video", 8, 4);
    const F accumulators = all_rows(engine, "user/accumulators", 16, 2);
    all.insert(all.end(), accumulators.begin(), accumulators.end());
    return all;
  };
  const F expected = trained({1, 4});
  EXPECT_EQ(trained({2, 4}), expected);
  EXPECT_EQ(trained({4, 4}), expected);
  EXPECT_EQ(trained({2, 4, false, Sharding::kMod}), expected);
  EXPECT_EQ(trained({4, 4, false, Sharding::kMod}), expected);
}

TEST(Engine, ReplicasOnThreadsEqualOneGlobalCall) {
  Embedding global = engine_of({1, 4});
  train_with_ones(global, 4);
  Embedding threaded = engine_of({2, 4});
  threaded.build(2);
  std::vector<std::thread> threads;
  for (std::int32_t r = 0; r < 4; ++r) {
    threads.emplace_back([&threaded, r] {
      Embedding::Replica replica = threaded.replica(r);
      const OwnedBatch batch(r);
      replica.enqueue(batch.sparse());
      const Activations activations = replica.dequeue();
      std::vector<std::vector<float>> storage;
      storage.reserve(8);
      replica.apply_gradients(all(activations, storage, 1.0f));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(all_rows(threaded, "video", 8, 4), all_rows(global, "video", 8, 4));
  EXPECT_EQ(all_rows(threaded, "user", 16, 2), all_rows(global, "user", 16, 2));
}

TEST(Engine, AbsentReplicasAreNamedAfterTheDeadline) {
  Embedding engine = engine_of({1, 2});
  const auto data = owned(2);
  engine.enqueue(ragged_batches(data));
  try {
    engine.replica(0).dequeue();
    FAIL() << "did not throw";
  } catch (const StateError& error) {
    EXPECT_NE(std::string(error.what()).find("for replica 1"), std::string::npos) << error.what();
  }
  EXPECT_EQ(values(engine.dequeue(), 2, 1), (F{6, 7, 2, 3}));
}

TEST(Engine, TokensApplyTheirOwnBatch) {
  Embedding engine = engine_of({}, sgd(1.0));
  const OwnedBatch a(0), b(1);
  LookupResult first = engine.look_up(a.ragged());
  LookupResult second = engine.look_up(b.ragged());
  std::vector<std::vector<float>> storage;
  storage.reserve(8);
  const Nested<Gradient> ones = all(first.activations, storage, 1.0f);
  engine.apply_gradients(std::move(second.token), ones);
  engine.apply_gradients(std::move(first.token), ones);
  EXPECT_EQ(row(engine, "video", 7, 4), (F{28, 29, 30, 31}));
  // Row 0: once watched and once favorited in sample 0, watched in 1 and 2, favorited in 2 and 3.
  EXPECT_EQ(row(engine, "video", 0, 4), (F{-6, -5, -4, -3}));
  EXPECT_THROW(engine.apply_gradients(std::move(first.token), ones), StateError);
}

TEST(Engine, ActivationsOutliveTheEngine) {
  Activations kept;
  {
    Embedding engine = engine_of({});
    const OwnedBatch batch(0);
    engine.enqueue(batch.ragged(), {.training = false});
    kept = engine.dequeue();
  }
  EXPECT_EQ(values(kept, 2), (F{6, 7, 2, 3}));
}

TEST(Engine, APipelinedForwardSeesTablesOneStepOld) {
  const auto forwards = [](bool pipelined) {
    const TablePtr table = make_table({.vocabulary_size = 1,
                                       .dim = 1,
                                       .initializer = Initializer::zeros(),
                                       .optimizer = {},
                                       .combiner = Combiner::kSum,
                                       .name = "t"});
    EmbeddingOptions options;
    options.pipeline_execution_with_tensor_core = pipelined;
    Embedding engine(Nested<FeatureConfig>(feature(table)), sgd(1.0), make_strategy(), options);
    const std::vector<std::int64_t> ids = {0};
    const Batch batch{Nested<FeatureIds>(FeatureIds(DenseIds{ids, {}})), {}};
    const F one = {1};
    F seen;
    for (int i = 0; i < 5; ++i) {
      engine.enqueue(batch);
      const Activations activations = engine.dequeue();
      seen.push_back(values(activations, 0)[0]);
      engine.apply_gradients(Nested<Gradient>(Gradient{one, {}}));
    }
    seen.push_back(row(engine, "t", 0, 1)[0]);
    return seen;
  };
  EXPECT_EQ(forwards(false), (F{0, -1, -2, -3, -4, -5}));
  EXPECT_EQ(forwards(true), (F{0, 0, -1, -2, -3, -5}));
}

TEST(Engine, ARateThatThrowsChangesNothing) {
  bool fail = true;
  const Optimizer dynamic("sgd", LearningRate::dynamic([&]() -> double {
                            if (fail) throw std::runtime_error("no rate today");
                            return 0.1;
                          }));
  Embedding engine = engine_of({}, dynamic);
  const OwnedBatch batch(0);
  engine.enqueue(batch.ragged());
  const Activations activations = engine.dequeue();
  std::vector<std::vector<float>> storage;
  storage.reserve(8);
  const Nested<Gradient> ones = all(activations, storage, 1.0f);
  EXPECT_THROW(engine.apply_gradients(ones), std::runtime_error);
  EXPECT_EQ(row(engine, "video", 0, 4), (F{0, 1, 2, 3}));
  fail = false;
  engine.apply_gradients(ones);
  EXPECT_NEAR(row(engine, "video", 0, 4)[0], -0.3f, 1e-6);
}

}  // namespace
}  // namespace embertable
