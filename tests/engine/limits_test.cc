// The edges of sizes, shapes and options.
#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <thread>

#include "testing/engine/batches.h"

namespace embertable {
namespace {

using namespace engine_fixture;  // NOLINT: the vocabulary of these tests

EmbeddingOptions varying() {
  EmbeddingOptions options;
  options.variable_batch = true;
  return options;
}

TEST(EngineLimits, ATableBeyondAnyMemoryIsRefusedByName) {
  for (const std::int64_t rows :
       {std::int64_t{1} << 50, std::int64_t{1} << 60, std::int64_t{1} << 62,
        std::numeric_limits<std::int64_t>::max()}) {
    for (const std::int32_t dim : {1, 2, 4096}) {
      for (const char* rule : {"adagrad", "rowwise_adagrad"}) {
        const StrategyPtr strategy = accelerator();
        Embedding engine = engine_with(strategy, one_zero_table(rows, dim), Optimizer(rule, 1.0));
        EXPECT_EQ(refusal<IoError>([&] {
                    engine.build(4);
                  }).find("table 't' of " + std::to_string(rows) + " rows: memory: "),
                  0u);
        EXPECT_FALSE(engine.built());
        engine_with(strategy).build(2);  // the strategy is free
      }
    }
  }
}

TEST(EngineLimits, AnOutputShapeLeavesAnAxisForTheDim) {
  const auto refused = [](const Shape& shape) {
    return refusal<ValueError>(
        [&] { engine_with(accelerator(), one_feature(Combiner::kSum, 0, shape)); });
  };
  EXPECT_EQ(refused(Shape{1, 1, 1, 1, 1, 1, 4}), "");
  EXPECT_NE(refused(Shape{1, 1, 1, 1, 1, 1, 1, 4}).find("output_shape must have rank <= 7"),
            std::string::npos);
}

TEST(EngineLimits, ReplicasThatCannotBeCountedAreRefused) {
  const auto refused = [](std::int32_t hosts, std::int32_t replicas_per_host) {
    return refusal<ValueError>(
        [&] { make_strategy({.hosts = hosts, .replicas_per_host = replicas_per_host}); });
  };
  EXPECT_EQ(refused(65536, 65536),
            "strategy: hosts * replicas_per_host must be <= 65536, got 65536 * 65536");
  EXPECT_NE(refused(1 << 30, 4), "");
  EXPECT_NE(refused(1, 65537), "");
  EXPECT_EQ(refused(256, 256), "");
}

TEST(EngineLimits, AnEndlessTimeoutIsALongOne) {
  StrategyOptions options;
  options.hosts = 2;
  options.executor = make_inline_executor();
  options.timeout = std::chrono::milliseconds::max();
  Embedding engine(one_zero_table(4, 2), sgd(1), make_strategy(options));
  const Ids ids = {1, 2};
  const Batch batch = batch_of(DenseIds{ids, {}});
  train(engine, std::vector<Batch>(2, batch), filled(1));
  engine.enqueue(std::vector<Batch>(2, batch));
  std::thread late([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    engine.replica(1).dequeue();
  });
  EXPECT_EQ(values(engine.replica(0).dequeue(), 0), F(4, -2));
  late.join();
}

TEST(EngineLimits, BatchesWithoutSamplesOfSomeReplicasOrAll) {
  const Ids none, zero = {0}, ids = {7, 8, 7};
  const std::vector<Batch> empty = {batch_of(DenseIds{none, {}}), batch_of(RaggedIds{zero, none}),
                                    batch_of(SparseIds{none, none, Shape{0, 4}}),
                                    batch_of(SparseIds{none, none, Shape{2, 0}})};
  for (const std::int32_t hosts : {1, 2}) {
    Embedding engine = engine_with(accelerator(2, hosts), one_zero_table(100, 4),
                                   Optimizer("adagrad", 1.0), varying());
    engine.build(3);
    for (const Batch& batch : empty) {
      train(engine, std::vector<Batch>{batch, batch}, filled(1));
      const Activations activations =
          train(engine, std::vector<Batch>{batch, batch_of(DenseIds{ids, {}})}, filled(1));
      EXPECT_EQ(activations(0, 1).shape, (Shape{3, 4}));
    }
    EXPECT_EQ(row(engine, "t/accumulators", 7, 4), F(4, 0.1f + 4 + 4 + 4 + 4));
    EXPECT_EQ(row(engine, "t/accumulators", 8, 4), F(4, 0.1f + 1 + 1 + 1 + 1));
    EXPECT_EQ(row(engine, "t/accumulators", 9, 4), F(4, 0.1f));
  }
}

TEST(EngineLimits, AMillionSamplesWithoutIds) {
  constexpr std::int64_t kSamples = 1000000;
  const Ids two = {3, 3};
  Ids splits(kSamples + 1, 0);
  splits[kSamples - 1] = 1;
  splits[kSamples] = 2;
  for (const std::int32_t hosts : {1, 2}) {
    Embedding engine = engine_with(accelerator(hosts, hosts), one_zero_table(100, 1), sgd(1));
    const Activations activations =
        train(engine, std::vector<Batch>(hosts, batch_of(RaggedIds{splits, two})), filled(1));
    EXPECT_EQ(activations(0).shape, (Shape{kSamples, 1}));
    EXPECT_EQ(row(engine, "t", 3, 1), F{-2.0f * static_cast<float>(hosts)});
  }
}

/// A tile reads its splits on its own: one that starts below 0 must not be believed.
TEST(EngineLimits, SplitsThatAreWrongWhereATileStarts) {
  constexpr std::int64_t kRows = 3 * 2048;
  Ids ids, right = {0};
  for (std::int64_t i = 0; i < kRows; ++i) ids.push_back(i % 50), right.push_back(i + 1);
  Embedding engine = engine_with(accelerator(), one_zero_table(100, 1));
  engine.build(kRows);
  for (const std::size_t at : {2047u, 2048u, 2049u, 4096u}) {
    for (const std::int64_t bad : {-5, -2147483647, 100000}) {
      Ids splits = right;
      splits[at] = bad;
      const std::vector<std::int32_t> narrow(splits.begin(), splits.end());
      for (const IntegerSpan& of : {IntegerSpan(splits), IntegerSpan(narrow)}) {
        EXPECT_NE(refusal<DataError>([&] {
                    engine.enqueue(batch_of(RaggedIds{of, ids}));
                  }).find("fall"),
                  std::string::npos);
      }
    }
  }
}

TEST(EngineLimits, AnEngineWithoutFeaturesSteps) {
  Embedding engine = engine_with(accelerator(4, 2), Nested<FeatureConfig>::list({}));
  train(engine, std::vector<Batch>(4, Batch{Nested<FeatureIds>::list({}), {}}), filled(1));
  EXPECT_EQ(engine.step(), 1);
}

/// Scratch after a step that names every row.
std::int64_t scratch_after_step(const Optimizer& rule, const EmbeddingOptions& options = {}) {
  constexpr std::int64_t kRows = 1 << 16;
  Embedding engine = engine_with(accelerator(), one_zero_table(kRows, 16), rule, options);
  Ids ids(kRows);
  std::iota(ids.begin(), ids.end(), 0);
  engine.enqueue(batch_of(DenseIds{ids, {}}));
  engine.dequeue();
  engine.apply_gradients(Nested<Gradient>(Gradient::none()));
  return engine.memory().entries.back().bytes;
}

TEST(EngineLimits, MemoryCountsSumsThatAreHandedOnAndABitForEachRow) {
  constexpr std::int64_t kRows = 1 << 16;
  const std::int64_t usual = scratch_after_step(sgd(1));
  EXPECT_GE(scratch_after_step(Optimizer("none", 0)), usual + kRows * (16 * 4 + 8));
  EXPECT_GE(scratch_after_step(sgd(1), {.count_unique_ids = true}), usual + kRows / 8);
}

TEST(EngineLimits, AStrategyInitializedAnewFreesTheTablesOfTheEngineBefore) {
  const StrategyPtr strategy = accelerator();
  Embedding before = engine_with(strategy, one_zero_table(1 << 16, 64));
  before.build(3);
  EXPECT_GE(before.memory().total_bytes, 16 << 20);
  strategy->initialize();
  EXPECT_LT(before.memory().total_bytes, 1 << 20);
  EXPECT_THROW(row(before, "t", 0, 64), StateError);
  Embedding after = engine_with(strategy, one_zero_table(2, 1));
  after.build(3);
  EXPECT_THROW(row(before, "t", 0, 64), StateError);
  EXPECT_EQ(row(after, "t", 0, 1), F{0});
}

TEST(EngineLimits, ATokenThatIsMovedFromIsEmpty) {
  Embedding engine = engine_with(accelerator(), one_zero_table(2, 1), sgd(1));
  const Ids one = {1};
  const auto look_up = [&] { return engine.look_up(batch_of(DenseIds{one, {}})); };
  LookupResult a = look_up(), b = look_up();
  a.token = std::move(b.token);
  EXPECT_TRUE(a.token.valid());
  EXPECT_FALSE(b.token.valid());  // NOLINT: what is left of it
  engine.apply_gradients(std::move(a.token), Gradients(a.activations, filled(1)).all());
  EXPECT_EQ(row(engine, "t", 1, 1), F{-1});
}

}  // namespace
}  // namespace embertable
