// Devices, hosts and cores of a strategy: who is fed by which call, and how a replica's batch is
// shared among its cores.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <limits>
#include <thread>

#include "embertable/tensorflow/tpu_embedding_configuration.h"
#include "testing/engine/batches.h"

namespace embertable {
namespace {

using namespace engine_fixture;  // NOLINT: the vocabulary of these tests
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

StrategyPtr strategy_of(std::int32_t hosts, std::int32_t replicas_per_host,
                        std::optional<std::int32_t> cores = {}) {
  return make_strategy({.hosts = hosts,
                        .replicas_per_host = replicas_per_host,
                        .cores_per_replica = cores,
                        .executor = make_inline_executor()});
}

std::string tpu(int task, int index) {
  return "/job:worker/replica:0/task:" + std::to_string(task) +
         "/device:TPU:" + std::to_string(index);
}
std::string cpu(int task) {
  return "/job:worker/replica:0/task:" + std::to_string(task) + "/device:CPU:0";
}

TEST(EngineCases, Case011_HostsFollowTheirDevices) {
  const StrategyPtr strategy = strategy_of(2, 2);
  EXPECT_THAT(strategy->devices(), ElementsAre(tpu(0, 0), tpu(0, 1), tpu(1, 0), tpu(1, 1)));
  EXPECT_THAT(strategy->list_of_hosts(), ElementsAre(cpu(0), cpu(1)));
  EXPECT_THAT(strategy_of(1, 1, 2)->devices(), ElementsAre(tpu(0, 0), tpu(0, 1)));
}

// Section 11: sorted by replica, task and index as numbers, whatever the order of the list.
TEST(EngineCases, Case011_OddListsAreSorted) {
  StrategyOptions options{.hosts = 2, .replicas_per_host = 2, .executor = make_inline_executor()};
  options.devices = {tpu(10, 1), tpu(9, 10), tpu(10, 0), tpu(9, 9)};
  const StrategyPtr strategy = make_strategy(options);
  EXPECT_THAT(strategy->devices(), ElementsAre(tpu(9, 9), tpu(9, 10), tpu(10, 0), tpu(10, 1)));
  EXPECT_THAT(strategy->list_of_hosts(), ElementsAre(cpu(9), cpu(10)));
  EXPECT_EQ(strategy->core_of(tpu(10, 0)), 2);
  EXPECT_EQ(strategy->core_of("/task:9/device:TPU:10"), 1);
  EXPECT_EQ(strategy->core_of("TPU:3"), 3);
}

std::string refused_devices(std::vector<std::string> devices) {
  StrategyOptions options{.hosts = 2, .executor = make_inline_executor()};
  options.devices = std::move(devices);
  return refusal<ValueError>([&] { make_strategy(options); });
}

TEST(Strategy, SaysWhichDeviceBreaksWhichRule) {
  EXPECT_THAT(refused_devices({tpu(0, 0), tpu(0, 1)}), HasSubstr("2 hosts"));
  EXPECT_THAT(refused_devices({tpu(0, 0)}), HasSubstr("2 cores, got 1"));
  EXPECT_THAT(refused_devices({tpu(0, 0), tpu(0, 0)}), HasSubstr("twice"));
  EXPECT_THAT(refused_devices({tpu(0, 0), "TPU:1"}), HasSubstr("'TPU:1'"));
  EXPECT_THAT(refused_devices({tpu(0, 0), cpu(1)}), HasSubstr(cpu(1)));
  EXPECT_THAT(refused_devices({tpu(0, 0), "/task:x/device:TPU:0"}), HasSubstr("/task:x"));
  EXPECT_THAT(refusal<ValueError>([] { strategy_of(1, 1, 0); }),
              HasSubstr("cores_per_replica must be >= 1, got 0"));
  EXPECT_THAT(refusal<ValueError>([] { strategy_of(1, 1 << 10, 1 << 7); }),
              HasSubstr("cores_per_replica must be <= 65536"));
}

TEST(Strategy, FindsTheCoreOfADevice) {
  const StrategyPtr strategy = strategy_of(2, 2, 2);
  EXPECT_EQ(strategy->cores(), 8);
  EXPECT_EQ(strategy->core_of("TPU:7"), 7);
  EXPECT_EQ(strategy->core_of("/device:tpu:0"), 0);
  EXPECT_EQ(strategy->core_of("/job:worker/task:1/device:TPU:2"), 6);
  for (const std::string wrong :
       {"TPU:8", "/task:2/device:TPU:0", "/task:0/device:TPU:4", "/job:ps/task:0/device:TPU:0",
        "/replica:1/task:0/device:TPU:0", "GPU:0", "CPU:0", "TPU", "", "/", "TPU:-1", "TPU:1x",
        "/device:", "TPU:99999999999", "/task:0"}) {
    EXPECT_THAT(refusal<ValueError>([&] { strategy->core_of(wrong); }),
                HasSubstr("'" + wrong + "'"));
  }
}

TEST(EngineCases, Case043_ADeviceThatIsNoAccelerator) {
  Embedding engine = engine_with(accelerator(2));
  const auto data = owned(2);
  const Batch batch = data[0].ragged();
  EXPECT_THAT(refusal<ValueError>([&] { engine.enqueue(batch, {.device = "CPU:0"}); }),
              HasSubstr("CPU:0"));
  EXPECT_THAT(refusal<ValueError>([&] { engine.enqueue(batch, {.device = "TPU:2"}); }),
              HasSubstr("TPU:2"));
  EXPECT_THAT(
      refusal<ValueError>([&] { engine.enqueue(ragged_batches(data), {.device = "TPU:1"}); }),
      AllOf(HasSubstr("TPU:1"), HasSubstr("2")));
  EXPECT_THAT(refusal<ValueError>([&] { engine.replica(0).enqueue(batch, {.device = "TPU:0"}); }),
              HasSubstr("TPU:0"));
  EXPECT_FALSE(engine.built());
  Embedding plain(features(), sgd(0.1), nullptr);
  EXPECT_THROW(plain.enqueue(batch, {.device = "CPU:0"}), StateError);
}

TEST(EngineCases, Case044_OneGlobalCallEqualsOnePerDevice) {
  for (const std::int32_t hosts : {1, 2}) {
    Embedding global = engine_with(accelerator(4, hosts)),
              parts = engine_with(accelerator(4, hosts));
    const auto data = owned(4);
    for (int repeat = 0; repeat < 2; ++repeat) {
      global.enqueue(sparse_batches(data));
      for (std::int32_t r = 3; r >= 0; --r)
        parts.enqueue(data[r].sparse(), {.device = "TPU:" + std::to_string(r)});
      const Activations a = global.dequeue(), b = parts.dequeue();
      for (std::int64_t i = 0; i < 3; ++i)
        for (std::int32_t r = 0; r < 4; ++r) EXPECT_EQ(values(a, i, r), values(b, i, r));
      global.apply_gradients(Gradients(a, filled(1)).all());
      parts.apply_gradients(Gradients(b, filled(1)).all());
    }
    EXPECT_EQ(global.digest(), parts.digest());
  }
}

TEST(EngineCases, Case045_EnqueueOnTheReplicasThreadOrBefore) {
  for (const bool inside : {true, false}) {
    Embedding engine = engine_with(accelerator(4)), whole = engine_with(accelerator(4));
    const auto data = owned(4);
    for (int step = 0; step < 2; ++step) {
      whole.enqueue(ragged_batches(data));
      const Activations expected = whole.dequeue();
      whole.apply_gradients(Gradients(expected, filled(1)).all());
      if (!inside) engine.enqueue(ragged_batches(data));
      std::vector<std::thread> threads;
      for (std::int32_t r = 0; r < 4; ++r) {
        threads.emplace_back([&, r] {
          Embedding::Replica mine = engine.replica(r);
          if (inside) mine.enqueue(data[r].ragged());
          const Activations got = mine.dequeue({.timeout = std::chrono::seconds(60)});
          for (std::int64_t i = 0; i < 3; ++i)
            EXPECT_EQ(values(got, i), values(expected, i, r)) << "replica " << r;
          mine.apply_gradients(Gradients(got, filled(1))[0]);
        });
      }
      for (std::thread& thread : threads) thread.join();
    }
    EXPECT_EQ(engine.digest(), whole.digest());
  }
}

TEST(EngineCases, Case085_ARowForEachOfTwoCores) {
  for (const bool by_device : {false, true}) {
    int step = 0;
    const Optimizer optimizer(
        "sgd", LearningRate::dynamic([&] { return std::max(0.5, 1 - 0.05 * step); }));
    Embedding engine = engine_with(strategy_of(1, 1, 2), one_zero_table(2, 4), optimizer);
    const Ids both = {0, 1}, zero = {0}, one = {1};
    const std::vector<double> expected = {0,    -1,    -1.95, -2.85, -3.7,
                                          -4.5, -5.25, -5.95, -6.6,  -7.2};
    for (; step < 10; ++step) {
      if (by_device) {
        engine.enqueue(batch_of(DenseIds{one, Shape{1, 1}}), {.device = "TPU:1"});
        engine.enqueue(batch_of(DenseIds{zero, Shape{1, 1}}), {.device = "TPU:0"});
      } else {
        engine.enqueue(batch_of(DenseIds{both, Shape{2, 1}}));
      }
      const Activations activations = engine.dequeue();
      EXPECT_EQ(activations.replicas(), 1);
      EXPECT_EQ(activations(0).shape, (Shape{2, 4}));
      expect_close(values(activations, 0), std::vector<double>(8, expected[step]));
      engine.apply_gradients(Gradients(activations, filled(1)).all());
    }
    EXPECT_EQ(engine.output_shapes()[0], Shape{1});
    EXPECT_EQ(engine.configuration().num_tensor_cores, 2);
  }
}

TEST(EngineCases, Case086_OnlyTheLeadingDimGrowsWithTheCores) {
  Embedding engine = engine_with(strategy_of(1, 1, 2), one_feature(Combiner::kSum, 0, {2, 3}));
  const Ids ids = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  const FeatureIds dense = DenseIds{ids, Shape{4, 3, 1}};
  engine.enqueue(batch_of(dense));
  const Activations activations = engine.dequeue();
  EXPECT_EQ(activations(0).shape, (Shape{4, 3, 2}));
  F expected(24);
  for (std::size_t i = 0; i < 24; ++i) expected[i] = static_cast<float>(i);
  EXPECT_EQ(values(activations, 0), expected);
  const F wide(48, 1);
  EXPECT_THAT(refusal<ValueError>([&] {
                engine.apply_gradients(Nested<Gradient>(Gradient{wide, Shape{4, 6, 2}}));
              }),
              AllOf(HasSubstr("(4, 6, 2)"), HasSubstr("(4, 3, 2)")));
  const F ones(24, 1);
  engine.apply_gradients(Nested<Gradient>(Gradient{ones, Shape{4, 3, 2}}));
  expect_close(row(engine, "user", 11, 2), {21.9, 22.9});

  const Rows rows(Samples{{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}, {10}, {11}});
  EXPECT_THAT(refusal<ValueError>([&] { engine.enqueue(batch_of(rows.ragged())); }),
              HasSubstr("ragged"));
  EXPECT_THROW(engine.replica(0).enqueue(batch_of(rows.ragged())), ValueError);
  EXPECT_THROW(engine.look_up(batch_of(rows.ragged())), ValueError);
  // One core's own rows are no one's to cut.
  const Rows six(Samples{{0}, {1}, {2}, {3}, {4}, {5}});
  for (const char* device : {"TPU:0", "TPU:1"})
    engine.enqueue(batch_of(six.ragged()), {.training = false, .device = device});
  EXPECT_EQ(engine.dequeue()(0).shape, (Shape{4, 3, 2}));
}

/// Sparse ids of `samples` samples in an order of their own, some samples empty, and weights.
struct Scattered {
  Ids indices, ids;
  std::vector<double> weights;
  std::int64_t samples;
  explicit Scattered(std::int64_t of_samples) : samples(of_samples) {
    for (std::int64_t i = 0; i < 40; ++i) {
      indices.insert(indices.end(), {(i * 7 + 3) % samples, i % 5});
      ids.push_back((i * i) % 16);
      weights.push_back(0.25 * static_cast<double>(i % 7) + 0.5);
    }
  }
  Batch batch() const {
    return batch_of(SparseIds{indices, ids, Shape{samples, 5}}, SparseWeights{weights});
  }
};

// Cores count as replicas in every sum, so that as many replicas of one core give the same bits.
TEST(EngineCores, GiveTheBitsOfAsManyReplicas) {
  for (const Combiner combiner : {Combiner::kSum, Combiner::kMean, Combiner::kSqrtN}) {
    for (const std::int32_t hosts : {1, 2}) {
      SCOPED_TRACE(std::to_string(hosts) + " hosts");
      const auto make = [&](std::int32_t replicas_per_host, std::int32_t cores) {
        EmbeddingOptions options;
        options.pipeline_execution_with_tensor_core = true;
        return engine_with(strategy_of(hosts, replicas_per_host, cores), one_feature(combiner),
                           Optimizer("adagrad", 0.1), options);
      };
      Embedding cored = make(2, 3), plain = make(6, 1);
      const std::int32_t replicas = 2 * hosts;
      for (int step = 0; step < 3; ++step) {
        const Scattered nine(9);
        const std::vector<Batch> whole(replicas, nine.batch());
        cored.enqueue(whole);
        const Activations a = cored.dequeue();
        ASSERT_EQ(a(0).shape, (Shape{9, 2}));
        // The same three samples of each core, as they stand in the whole.
        std::deque<Scattered> parts;
        std::vector<Batch> batches;
        for (std::int32_t r = 0; r < replicas; ++r) {
          for (std::int64_t core = 0; core < 3; ++core) {
            Scattered part(9);
            part.indices.clear(), part.ids.clear(), part.weights.clear(), part.samples = 3;
            for (std::size_t i = 0; i < nine.ids.size(); ++i) {
              if (nine.indices[2 * i] / 3 != core) continue;
              part.indices.insert(part.indices.end(),
                                  {nine.indices[2 * i] % 3, nine.indices[2 * i + 1]});
              part.ids.push_back(nine.ids[i]);
              part.weights.push_back(nine.weights[i]);
            }
            parts.push_back(std::move(part));
            batches.push_back(parts.back().batch());
          }
        }
        plain.enqueue(batches);
        const Activations b = plain.dequeue();
        for (std::int32_t r = 0; r < replicas; ++r) {
          F joined;
          for (std::int32_t core = 0; core < 3; ++core) {
            const F part = values(b, 0, r * 3 + core);
            joined.insert(joined.end(), part.begin(), part.end());
          }
          EXPECT_EQ(values(a, 0, r), joined);
        }
        const auto squares = [](const Activation& activation, std::int64_t, std::int32_t) {
          F gradient(activation.values.begin(), activation.values.end());
          for (float& g : gradient) g = g * g * 0.01f;
          return gradient;
        };
        cored.apply_gradients(Gradients(a, squares).all());
        plain.apply_gradients(Gradients(b, squares).all());
      }
      EXPECT_EQ(cored.digest(), plain.digest());
    }
  }
}

TEST(EngineCores, OutputsOfTheCallersAreThoseOfTheReplica) {
  Embedding engine = engine_with(strategy_of(1, 2, 2), one_feature(Combiner::kSum));
  const Ids ids = {0, 1, 2, 3};
  const Batch batch = batch_of(DenseIds{ids, {}});
  engine.enqueue(batch, {.training = false});
  F first(8), second(8);
  engine.dequeue(std::vector<std::span<float>>{first, second});
  EXPECT_EQ(first, (F{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(second, first);
  const LookupResult result = engine.look_up(batch, false);
  EXPECT_EQ(values(result.activations, 0, 1), first);
  EXPECT_EQ(result.activations(0, 1).shape, (Shape{4, 2}));
}

TEST(EngineCores, NameWhatIsWrongAsTheCallerGaveIt) {
  Embedding engine = engine_with(strategy_of(1, 2, 2), one_feature(Combiner::kSum));
  Scattered good(8);
  const auto refused = [&](const Scattered& bad) {
    const std::vector<Batch> batches = {good.batch(), bad.batch()};
    try {
      engine.enqueue(batches);
    } catch (const DataError& error) {
      return error.where();
    }
    ADD_FAILURE() << "accepted";
    return BatchPosition{};
  };
  for (const bool built : {false, true}) {
    if (built) engine.build(4);
    Scattered bad(8);
    bad.ids[33] = 16;
    const BatchPosition of_id = refused(bad);
    EXPECT_EQ(of_id.replica, 1);
    EXPECT_EQ(of_id.sample, bad.indices[66]);
    EXPECT_EQ(of_id.position, 33);
    bad = Scattered(8);
    bad.indices[40] = 8;
    EXPECT_EQ(refused(bad).replica, 1);
    EXPECT_EQ(refused(bad).position, 20);
    bad = Scattered(8);
    bad.indices[40] = -1;
    EXPECT_EQ(refused(bad).position, 20);
    bad = Scattered(8);
    bad.weights.resize(20);  // matches the ids of a core, which are not its ids
    EXPECT_EQ(refused(bad).replica, 1);
    EXPECT_EQ(engine.built(), built);
  }
  const Scattered nine(9);
  EXPECT_THAT(refusal<ValueError>([&] { engine.enqueue(nine.batch()); }),
              AllOf(HasSubstr("2 cores"), HasSubstr("(9, 5)")));
  const Ids three = {1, 2, 3};
  EXPECT_THAT(refusal<ValueError>([&] {
                engine.enqueue(batch_of(DenseIds{three, {}}));
              }),
              HasSubstr("(3)"));
  engine.enqueue(good.batch());
  engine.dequeue();
}

TEST(EngineCores, ANonFiniteGradientIsNamedByItsPlaceInTheReplica) {
  EmbeddingOptions options;
  options.gradient_policy = GradientPolicy::kError;
  Embedding engine =
      engine_with(strategy_of(1, 2, 2), one_feature(Combiner::kSum), sgd(0.1), options);
  const Ids ids = {0, 1, 2, 9};
  engine.enqueue(batch_of(DenseIds{ids, {}}));
  const Activations activations = engine.dequeue();
  const Gradients bad(activations, [](const Activation& of, std::int64_t, std::int32_t r) {
    F gradient(of.values.size(), 1);
    if (r == 1) gradient[7] = std::numeric_limits<float>::infinity();
    return gradient;
  });
  try {
    engine.apply_gradients(bad.all());
    ADD_FAILURE() << "accepted";
  } catch (const DataError& error) {
    EXPECT_EQ(error.where().replica, 1);
    EXPECT_EQ(error.where().sample, 3);
    EXPECT_EQ(error.where().position, 7);
    EXPECT_THAT(error.what(), HasSubstr("row 9"));
  }
  engine.apply_gradients(Gradients(activations, filled(1)).all());
}

TEST(EngineCores, QueuesAreOfCores) {
  EmbeddingOptions options;
  options.queue_capacity = 1;
  Embedding engine =
      engine_with(strategy_of(1, 2, 2), one_feature(Combiner::kSum), sgd(0.1), options);
  const Ids two = {0, 1}, four = {0, 1, 2, 3};
  const Batch part = batch_of(DenseIds{two, {}}), whole = batch_of(DenseIds{four, {}});
  engine.enqueue(part, {.device = "TPU:2"});
  EXPECT_THAT(refusal<StateError>([&] { engine.enqueue(part, {.device = "TPU:2"}); }),
              AllOf(HasSubstr("replica 1 (core 0)"), HasSubstr("full")));
  EXPECT_THAT(refusal<StateError>([&] { engine.enqueue(whole); }),
              HasSubstr("another number of batches"));
  EXPECT_THROW(engine.enqueue(part, {.training = false, .device = "TPU:3"}), StateError);
  engine.replica(0).enqueue(whole);
  EXPECT_THAT(refusal<StateError>([&] { engine.dequeue(); }), HasSubstr("replica 1 (core 1)"));
  engine.enqueue(part, {.device = "TPU:3"});
  const Activations activations = engine.dequeue();
  EXPECT_EQ(values(activations, 0, 1), (F{0, 1, 2, 3, 0, 1, 2, 3}));
  engine.apply_gradients(Gradients(activations, filled(1)).all());
}

TEST(EngineCores, NeedAnAxisToStandOn) {
  Embedding engine =
      engine_with(strategy_of(1, 1, 2), one_feature(Combiner::kSum, 0, Shape::scalar()));
  EXPECT_THAT(refusal<ValueError>([&] { engine.build(); }), HasSubstr("2 cores"));
  EXPECT_FALSE(engine.built());
}

TEST(EngineCores, OfAVaryingBatchMayHaveDifferentNumbersOfSamples) {
  EmbeddingOptions options;
  options.variable_batch = true;
  Embedding engine =
      engine_with(strategy_of(1, 1, 2), one_feature(Combiner::kSum), sgd(0.1), options);
  engine.build(3);
  const Ids three = {0, 1, 2}, one = {7};
  engine.enqueue(batch_of(DenseIds{three, {}}), {.device = "TPU:0"});
  engine.enqueue(batch_of(DenseIds{one, {}}), {.device = "TPU:1"});
  const Activations activations = engine.dequeue();
  EXPECT_EQ(activations(0).shape, (Shape{4, 2}));
  EXPECT_EQ(values(activations, 0), (F{0, 1, 2, 3, 4, 5, 14, 15}));
  const F gradient = {0, 0, 0, 0, 0, 0, 1, 2};
  engine.apply_gradients(Nested<Gradient>(Gradient{gradient, Shape{4, 2}}));
  expect_close(row(engine, "user", 7, 2), {13.9, 14.8});
}

}  // namespace
}  // namespace embertable
