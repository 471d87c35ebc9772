// Calls out of order, bad batches and gradients, absent replicas: each raises, and the engine goes
// on as if they had never been (spec Q-34).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <thread>

#include "testing/engine/scene.h"
#include "testing/executor.h"

namespace embertable {
namespace {

using namespace engine_fixture;  // NOLINT: the vocabulary of these tests
using testing::AllOf;
using testing::HasSubstr;

auto halves() { return filled(0.5f); }

/// What the spec allows: batches that wait (training or not), and dequeued training batches without
/// gradients.
struct Order {
  std::size_t capacity = 0, most_awaiting = 0;
  std::deque<bool> queue = {};
  std::size_t awaiting = 0;

  bool may_enqueue() const { return queue.size() < capacity; }
  bool may_dequeue() const { return !queue.empty() && awaiting < most_awaiting; }
  bool may_apply() const { return awaiting > 0; }
};

/// A random program of legal and illegal calls. `strict` hears all of them, `lawful` only the legal
/// ones.
void run_program(std::uint64_t seed, bool pipelined, std::int32_t replicas, std::int32_t hosts) {
  Dice dice(seed);
  EmbeddingOptions options;
  options.pipeline_execution_with_tensor_core = pipelined;
  options.queue_capacity = static_cast<std::int32_t>(dice.between(1, 4));
  const auto make = [&] {
    return engine_with(accelerator(replicas, hosts), features(), Optimizer("adagrad", 0.1),
                       options);
  };
  Embedding strict = make(), lawful = make();
  Order order{static_cast<std::size_t>(options.queue_capacity), pipelined ? 2u : 1u};
  const auto data = owned(replicas);
  const auto ragged = ragged_batches(data), sparse = sparse_batches(data);
  strict.build(2);
  const Activations some = strict.look_up(ragged, false).activations;
  const Gradients gradients(some, halves());

  for (int call = 0; call < 60; ++call) {
    SCOPED_TRACE("call " + std::to_string(call));
    switch (dice.between(0, 2)) {
      case 0: {
        const bool training = dice.chance(70);
        const auto& batches = dice.chance(50) ? ragged : sparse;
        if (!order.may_enqueue()) {
          EXPECT_THROW(strict.enqueue(batches, {.training = training}), StateError);
          break;
        }
        strict.enqueue(batches, {.training = training});
        lawful.enqueue(batches, {.training = training});
        order.queue.push_back(training);
        break;
      }
      case 1: {
        if (!order.may_dequeue()) {
          EXPECT_THROW(strict.dequeue(), StateError);
          break;
        }
        const Activations a = strict.dequeue(), b = lawful.dequeue();
        for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(values(a, i), values(b, i));
        if (order.queue.front()) ++order.awaiting;
        order.queue.pop_front();
        break;
      }
      case 2: {
        if (!order.may_apply()) {
          EXPECT_THROW(strict.apply_gradients(gradients.all()), StateError);
          break;
        }
        strict.apply_gradients(gradients.all());
        lawful.apply_gradients(gradients.all());
        --order.awaiting;
        break;
      }
    }
  }
  EXPECT_EQ(strict.digest(), lawful.digest());
}

TEST(EngineMisuse, ALookupThatCannotBuildIsNamedAsOne) {
  const OwnedBatch data(0);
  const Batch batch = data.ragged();
  Embedding engine = engine_with(accelerator());
  engine.set_verify_output_shapes_on_enqueue(false);
  EXPECT_EQ(refusal<ValueError>([&] { engine.look_up(batch, false); }),
            "look_up: the engine is not built, and verify_output_shapes_on_enqueue is off");
  EXPECT_EQ(refusal<ValueError>([&] { engine.enqueue(batch); }),
            "enqueue: the engine is not built, and verify_output_shapes_on_enqueue is off");
}

TEST(EngineMisuse, ARefusedBatchDoesNotDecideHowTheUpdateOfTheNextIsCut) {
  constexpr std::int64_t kRows = 200000, kSamples = 60000;
  const auto buckets_after = [&](std::span<const std::int64_t> refused) {
    FeatureConfig feature;
    feature.table = make_table({.vocabulary_size = kRows, .dim = 16, .name = "items"});
    Embedding engine(Nested<FeatureConfig>(feature), Optimizer("sgd", 0.1), accelerator(),
                     {.variable_batch = true});
    engine.build(kSamples);
    if (!refused.empty()) {
      EXPECT_THROW(engine.enqueue({Nested<FeatureIds>(DenseIds{refused, {}}), {}}), DataError);
    }
    std::vector<std::int64_t> ids(kSamples);
    for (std::int64_t i = 0; i < kSamples; ++i) ids[i] = i * 7919 % kRows;
    engine.enqueue({Nested<FeatureIds>(DenseIds{ids, {}}), {}});
    const Activations activations = engine.dequeue();
    engine.apply_gradients(Nested<Gradient>(Gradient{.values = activations(0).values}));
    return engine.last_step().tables[0].buckets;
  };
  const std::vector<std::int64_t> few = {1, 2, -1};
  const std::int64_t buckets = buckets_after({});
  EXPECT_GT(buckets, 1);
  EXPECT_EQ(buckets_after(few), buckets);
}

TEST(EngineMisuse, EveryCallOutOfOrderIsAnErrorInEveryState) {
  const std::uint64_t seed = test_seed();
  for (std::uint64_t i = 0; i < 60; ++i) {
    for (const bool pipelined : {false, true}) {
      SCOPED_TRACE("EMBERTABLE_TEST_SEED=" + std::to_string(seed) + ", program " +
                   std::to_string(i) + (pipelined ? ", pipelined" : ""));
      const bool two_hosts = i % 10 == 0;
      run_program(mix_seeds(seed, i), pipelined, two_hosts ? 2 : 1, two_hosts ? 2 : 1);
    }
  }
}

TEST(EngineMisuse, TheMessagesSayWhatIsMissing) {
  Embedding engine = engine_with(accelerator(2));
  const auto data = owned(2);
  const auto batches = ragged_batches(data);
  engine.build(2);
  EXPECT_THAT(refusal<StateError>([&] { engine.dequeue(); }), HasSubstr("dequeue"));
  engine.replica(1).enqueue(batches[1]);
  EXPECT_THAT(refusal<StateError>([&] { engine.dequeue(); }),
              AllOf(HasSubstr("0"), Not(HasSubstr("1"))));
  engine.replica(0).enqueue(batches[0]);
  const Activations activations = engine.dequeue();
  EXPECT_THAT(refusal<StateError>([&] {
                engine.enqueue(batches);
                engine.dequeue();
              }),
              HasSubstr("gradients"));
  engine.apply_gradients(Gradients(activations, halves()).all());
  EXPECT_THAT(
      refusal<StateError>([&] { engine.apply_gradients(Gradients(activations, halves()).all()); }),
      HasSubstr("apply_gradients"));
  EXPECT_THAT(refusal<ValueError>([&] { engine.replica(2); }), HasSubstr("2"));
  EXPECT_THROW(engine.replica(-1), ValueError);
  EXPECT_THROW(engine.enqueue(std::vector<Batch>(3, batches[0])), ValueError);
  EXPECT_THROW(engine.enqueue(std::vector<Batch>{}), ValueError);
}

TEST(EngineMisuse, AFullQueueOfOneReplicaIsItsOwn) {
  EmbeddingOptions options;
  options.queue_capacity = 2;
  Embedding engine = engine_with(accelerator(2), features(), sgd(0.1), options);
  const auto data = owned(2);
  const auto batches = ragged_batches(data);
  for (int i = 0; i < 2; ++i) engine.replica(1).enqueue(batches[1], {.training = false});
  EXPECT_THAT(
      refusal<StateError>([&] { engine.replica(1).enqueue(batches[1], {.training = false}); }),
      AllOf(HasSubstr("full"), HasSubstr("1"), HasSubstr("2")));
  for (int i = 0; i < 2; ++i) engine.replica(0).enqueue(batches[0], {.training = false});
  EXPECT_THROW(engine.enqueue(batches, {.training = false}), StateError);
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(values(engine.dequeue(), 1, 1), (F{0, 1, 2, 3, 4, 6, 8, 10}));
  engine.enqueue(batches, {.training = false});
  engine.dequeue();
}

/// Runs body(replica) on a thread for each.
void on_threads(const std::vector<std::int32_t>& replicas,
                const std::function<void(std::int32_t)>& body) {
  std::vector<std::thread> threads;
  for (const std::int32_t r : replicas) threads.emplace_back([&body, r] { body(r); });
  for (std::thread& thread : threads) thread.join();
}

/// An engine of four replicas for threads of their own.
Embedding four_replicas(std::chrono::milliseconds timeout, std::int32_t hosts = 1) {
  return engine_with(make_strategy({.hosts = hosts,
                                    .replicas_per_host = 4 / hosts,
                                    .executor = make_inline_executor(),
                                    .timeout = timeout}));
}

constexpr std::chrono::milliseconds kNow{0}, kSoon{200}, kLate = std::chrono::seconds(60);
const std::vector<std::int32_t> kAll = {0, 1, 2, 3};

void train_on_threads(Embedding& engine, const std::vector<OwnedBatch>& data) {
  on_threads(kAll, [&](std::int32_t r) {
    engine.replica(r).enqueue(data[r].ragged());
    const Activations activations = engine.replica(r).dequeue();
    engine.replica(r).apply_gradients(Gradients(activations, halves())[0]);
  });
}

/// The digest after `steps` undisturbed global steps.
std::string undisturbed(int steps, const Optimizer& optimizer = sgd(0.1)) {
  Embedding engine = engine_with(accelerator(4), features(), optimizer);
  const auto data = owned(4);
  for (int i = 0; i < steps; ++i) train(engine, ragged_batches(data), halves());
  return engine.digest();
}

TEST(EngineMisuse, AbsentReplicasAreNamedByAllThatWait) {
  Embedding engine = four_replicas(kSoon);
  const auto data = owned(4);
  engine.enqueue(ragged_batches(data));
  std::vector<std::string> texts(4);
  on_threads({0, 2}, [&](std::int32_t r) {
    texts[r] = refusal<StateError>([&] { engine.replica(r).dequeue(); });
  });
  for (const std::size_t r : {0u, 2u}) {
    EXPECT_THAT(texts[r], AllOf(HasSubstr("dequeue"), HasSubstr("1"), HasSubstr("3")));
  }
  const Activations activations = engine.dequeue();

  const Gradients gradients(activations, halves());
  on_threads({3, 1, 0}, [&](std::int32_t r) {
    texts[r] = refusal<StateError>([&] { engine.replica(r).apply_gradients(gradients[r]); });
  });
  for (const std::size_t r : {3u, 1u, 0u})
    EXPECT_THAT(texts[r], AllOf(HasSubstr("apply_gradients"), HasSubstr("2")));
  EXPECT_EQ(engine.step(), 0);
  engine.apply_gradients(gradients.all());
  EXPECT_EQ(engine.digest(), undisturbed(1));
}

TEST(EngineMisuse, ThreadsOfReplicasEqualGlobalCalls) {
  for (const std::int32_t hosts : {1, 2, 4}) {
    Embedding engine = four_replicas(kLate, hosts);
    const auto data = owned(4);
    engine.build(2);
    for (int i = 0; i < 3; ++i) train_on_threads(engine, data);
    EXPECT_EQ(engine.digest(), undisturbed(3));
  }
}

TEST(EngineMisuse, MisuseOnThreadsReachesEveryReplica) {
  Embedding engine = four_replicas(kLate);
  const auto data = owned(4);
  engine.build(2);
  std::vector<int> refused(4);
  const auto count = [&](std::int32_t r, const std::function<void()>& call) {
    if (!refusal<StateError>(call).empty()) ++refused[r];
  };
  const F none;
  on_threads(kAll, [&](std::int32_t r) {
    Embedding::Replica mine = engine.replica(r);
    const OwnedBatch& batch = data[r];
    count(r, [&] { mine.dequeue({.timeout = kNow}); });  // nothing is enqueued
    mine.enqueue(batch.ragged());
    const Activations activations = mine.dequeue();
    const Gradients gradients(activations, halves());
    mine.enqueue(batch.ragged());
    count(r, [&] { mine.dequeue(); });  // gradients are missing
    mine.apply_gradients(gradients[0]);
    mine.dequeue();
    mine.apply_gradients(gradients[0]);
  });
  // Before dequeue, and twice: at once, without waiting for the others.
  for (const std::int32_t r : kAll) {
    count(r, [&] {
      engine.replica(r).apply_gradients(
          Nested<Gradient>::tuple({Gradient::none(), Gradient::none(), Gradient::none()}));
    });
  }
  EXPECT_EQ(refused, (std::vector<int>{3, 3, 3, 3}));
  EXPECT_EQ(engine.digest(), undisturbed(2));
}

TEST(EngineMisuse, GradientsOfOneReplicaThatDoNotFit) {
  for (const std::int32_t hosts : {1, 2}) {
    Embedding engine = four_replicas(kLate, hosts);
    const auto data = owned(4);
    engine.build(2);
    const F six(6, 1.0f);
    std::vector<std::string> texts(4);
    on_threads(kAll, [&](std::int32_t r) {
      Embedding::Replica mine = engine.replica(r);
      mine.enqueue(data[r].ragged());
      const Activations activations = mine.dequeue();
      const Gradients gradients(activations, halves());
      Nested<Gradient> bad = gradients[0];
      if (r == 1) bad[2] = {six, Shape{2, 3}};
      texts[r] = refusal<ValueError>([&] { mine.apply_gradients(bad); });
      mine.apply_gradients(gradients[0]);
    });
    EXPECT_THAT(texts[1], AllOf(HasSubstr("'2'"), HasSubstr("(2, 3)"), HasSubstr("(2, 2)")));
    for (const std::string& text : texts) EXPECT_EQ(text, texts[1]);  // all raise together
    EXPECT_EQ(engine.digest(), undisturbed(1));
  }
}

TEST(EngineMisuse, ABadBatchOfOneReplicaLeavesTheOthersTheirs) {
  Embedding engine = four_replicas(kLate);
  const auto data = owned(4);
  engine.build(2);
  const Rows outside(Samples{{0}, {8}});
  const OwnedBatch& second = data[1];
  const Batch bad = batch_of(second.watched.ragged(), outside.ragged(), second.friends.ragged());
  BatchPosition where;
  on_threads(kAll, [&](std::int32_t r) {
    Embedding::Replica mine = engine.replica(r);
    if (r == 1) {
      try {
        mine.enqueue(bad);
      } catch (const DataError& error) {
        where = error.where();
      }
    }
    mine.enqueue(data[r].ragged());
    const Activations activations = mine.dequeue();
    mine.apply_gradients(Gradients(activations, halves())[0]);
  });
  EXPECT_EQ(where.feature, "1");
  EXPECT_EQ(where.replica, 1);
  EXPECT_EQ(where.sample, 1);
  EXPECT_EQ(where.position, 1);
  EXPECT_EQ(engine.digest(), undisturbed(1));

  // In one call for all replicas nothing is enqueued for any.
  std::vector<Batch> batches = ragged_batches(data);
  batches[1] = bad;
  EXPECT_THROW(engine.enqueue(batches), DataError);
  for (const std::int32_t r : kAll) {
    EXPECT_THAT(refusal<StateError>([&] { engine.dequeue({.timeout = kNow}); }),
                HasSubstr(std::to_string(r)));
  }
  batches[1] = second.ragged();
  train(engine, batches, halves());
  EXPECT_EQ(engine.digest(), undisturbed(2));
}

// Case 32: after an error a correct sequence works. Batches of one step that cannot be dequeued
// would be in the way for ever, so the second of them has to be refused.
TEST(EngineMisuse, ReplicasOfOneStepAgreeOnItsMode) {
  Embedding engine = engine_with(accelerator(2));
  const auto data = owned(2);
  const auto batches = ragged_batches(data);
  engine.build(2);
  engine.replica(0).enqueue(batches[0]);
  EXPECT_THROW(engine.replica(1).enqueue(batches[1], {.training = false}), StateError);
  engine.replica(1).enqueue(batches[1]);
  const Activations activations = engine.dequeue();
  engine.apply_gradients(Gradients(activations, halves()).all());
  engine.enqueue(batches);
  engine.dequeue();
}

/// Batches of the fixture that enqueue refuses, each for another reason.
std::vector<Batch> bad_batches(const OwnedBatch& good) {
  static const Ids kIds = {0, 1, 8}, kNegative = {0, -1, 1}, kFine = {0, 1, 1}, kSplits = {0, 2, 3},
                   kFalling = {0, 4, 3}, kLate3 = {1, 2, 3}, kIndices = {0, 0, 0, 1, 1, 0},
                   kOutside = {0, 0, 0, 2, 1, 0}, kThreeRows = {0, 1, 2, 3};
  static const F kShort = {1, 1}, kWeights = {1, 1, 1};
  const FeatureIds watched = good.watched.ragged(), friends = good.friends.ragged();
  const Shape shape = {2, 2};
  std::vector<Batch> all;
  for (const FeatureIds& bad :
       {FeatureIds(RaggedIds{kSplits, kIds}), FeatureIds(RaggedIds{kSplits, kNegative}),
        FeatureIds(RaggedIds{kFalling, kFine}), FeatureIds(RaggedIds{kLate3, kFine}),
        FeatureIds(RaggedIds{kThreeRows, kFine}), FeatureIds(SparseIds{kIndices, kIds, shape}),
        FeatureIds(SparseIds{kOutside, kFine, shape}),
        FeatureIds(SparseIds{kIndices, kFine, Shape{3, 2}}),
        FeatureIds(SparseIds{kIndices, kFine, Shape{6}}), FeatureIds(DenseIds{kFine, {}}),
        FeatureIds(DenseIds{kFine, Shape::scalar()})}) {
    all.push_back(batch_of(watched, bad, friends));
  }
  for (const FeatureWeights& bad :
       {FeatureWeights(RaggedWeights{kShort}), FeatureWeights(SparseWeights{kWeights}),
        FeatureWeights(DenseWeights{kWeights})}) {
    all.push_back(good.ragged());
    all.back().weights = weights_of({}, bad, {});
  }
  all.push_back(Batch{Nested<FeatureIds>::list({watched, watched, friends}), {}});
  all.push_back(Batch{Nested<FeatureIds>::tuple({watched, friends}), {}});
  return all;
}

TEST(EngineMisuse, BadBatchesInTheMiddleLeaveNoTrace) {
  for (const std::int32_t hosts : {1, 2, 4}) {
    for (const char* rule : {"sgd", "adagrad", "rowwise_adagrad"}) {
      Embedding engine = engine_with(accelerator(4, hosts), features(), Optimizer(rule, 0.1));
      const auto data = owned(4);
      const auto batches = ragged_batches(data);
      const std::vector<Batch> bad = bad_batches(data[2]);
      const auto refuse_all = [&] {
        for (std::size_t i = 0; i < bad.size(); ++i) {
          std::vector<Batch> spoiled = batches;
          spoiled[2] = bad[i];
          EXPECT_NE(refusal<std::invalid_argument>([&] { engine.enqueue(spoiled); }), "")
              << "bad batch " << i;
          EXPECT_NE(refusal<std::invalid_argument>([&] { engine.replica(2).enqueue(bad[i]); }), "")
              << "bad batch " << i;
          EXPECT_NE(refusal<std::invalid_argument>([&] { engine.look_up(spoiled); }), "")
              << "bad batch " << i;
        }
      };
      engine.build(2);
      for (int i = 0; i < 2; ++i) {
        refuse_all();
        engine.enqueue(batches);
        refuse_all();
        const Activations activations = engine.dequeue();
        refuse_all();
        engine.apply_gradients(Gradients(activations, halves()).all());
      }
      EXPECT_EQ(engine.digest(), undisturbed(2, Optimizer(rule, 0.1)));
    }
  }
}

TEST(EngineMisuse, OutputsOfAnotherSizeAreRefusedBeforeTheLookup) {
  Embedding engine = engine_with(accelerator());
  const OwnedBatch data(0);
  engine.enqueue(data.ragged());
  F watched(8, -1), favorited(8, -1), friends(4, -1);
  const std::vector<std::span<float>> right = {watched, favorited, friends};
  std::vector<std::span<float>> wrong = right;
  wrong[2] = std::span(friends).first(3);
  EXPECT_THAT(refusal<ValueError>([&] { engine.dequeue(wrong); }), HasSubstr("'2'"));
  wrong.pop_back();
  EXPECT_THROW(engine.dequeue(wrong), ValueError);
  EXPECT_EQ(watched, F(8, -1));
  engine.dequeue(right);
  EXPECT_EQ(watched, (F{0, 1, 2, 3, 4, 6, 8, 10}));
  EXPECT_EQ(favorited, (F{4, 6, 8, 10, 4, 5, 6, 7}));
  EXPECT_EQ(friends, (F{6, 7, 2, 3}));
  EXPECT_THROW(engine.dequeue(right), StateError);
  const Gradient w{watched, {}}, f{favorited, {}}, u{friends, {}};
  engine.apply_gradients(Nested<Gradient>::tuple({w, f, u}));
  EXPECT_THROW(engine.apply_gradients(Nested<Gradient>::tuple({w, f, u})), StateError);
}

TEST(EngineMisuse, AnEmptyArrayOfGradientsIsNotNone) {
  EmbeddingOptions options;
  options.variable_batch = true;
  Embedding engine(one_zero_table(4, 2), Optimizer("adam", 1), accelerator(), options);
  engine.build(2);
  const Ids two = {1, 3};
  engine.enqueue(batch_of(DenseIds{two, {}}));
  engine.dequeue();
  const std::vector<double> no_doubles;
  const F nothing, reserved = [] {
    F floats;
    floats.reserve(4);
    return floats;
  }();
  for (const Gradient& empty : {Gradient{nothing, {}}, Gradient{nothing, Shape{2, 2}},
                                Gradient{reserved, {}}, Gradient{no_doubles, {}}}) {
    EXPECT_FALSE(empty.is_none());
    EXPECT_NE(refusal<ValueError>([&] {
                engine.apply_gradients(Nested<Gradient>(empty));
              }).find("must have shape (2, 2), got "),
              std::string::npos);
  }
  engine.apply_gradients(Nested<Gradient>(Gradient::none()));
  EXPECT_EQ(engine.step(), 1);

  const Ids none;
  engine.enqueue(batch_of(DenseIds{none, {}}));
  engine.dequeue();
  engine.apply_gradients(Nested<Gradient>(Gradient{nothing, {}}));  // all that there are
  EXPECT_EQ(engine.step(), 2);
}

TEST(EngineMisuse, TokensAreOfOneEngineAndOneUse) {
  Embedding engine = engine_with(accelerator()), other = engine_with(accelerator());
  const OwnedBatch data(0);
  LookupResult result = engine.look_up(data.ragged());
  const Gradients gradients(result.activations, halves());
  other.build(2);
  EXPECT_THROW(other.apply_gradients(LookupToken(), gradients.all()), StateError);
  engine.apply_gradients(std::move(result.token), gradients.all());
  EXPECT_THROW(engine.apply_gradients(std::move(result.token), gradients.all()), StateError);
  EXPECT_THROW(engine.dequeue(), StateError);
  EXPECT_THROW(engine.apply_gradients(gradients.all()), StateError);
  LookupResult foreign = engine.look_up(data.ragged());
  EXPECT_THROW(other.apply_gradients(std::move(foreign.token), gradients.all()), StateError);
  EXPECT_EQ(row(other, "video", 0, 4), (F{0, 1, 2, 3}));
}

// A rate is a caller's function: where it throws, the call leaves the object as it was.
TEST(EngineMisuse, ARateIsAskedWhenTheGradientsComeAndAgainIfItThrew) {
  bool fail = false;
  const Optimizer optimizer("sgd", LearningRate::dynamic([&] {
                              if (fail) throw std::runtime_error("no rate today");
                              return 1.0;
                            }));
  EmbeddingOptions options;
  options.pipeline_execution_with_tensor_core = true;
  Embedding engine = engine_with(accelerator(), one_zero_table(2, 1), optimizer, options);
  const Ids zero = {0}, one = {1};
  train(engine, batch_of(DenseIds{zero, {}}), filled(1));
  fail = true;  // the pending update has its rate
  engine.assign_rows("t", Ids{1}, F{5});
  EXPECT_EQ(variable(engine, "t", 2, 1), (F{-1, 5}));
  engine.enqueue(batch_of(DenseIds{one, {}}));
  const Activations activations = engine.dequeue();
  EXPECT_EQ(values(activations, 0), F{5});
  const Gradients gradients(activations, filled(1));
  EXPECT_THROW(engine.apply_gradients(gradients.all()), std::runtime_error);
  EXPECT_EQ(engine.step(), 1);
  fail = false;
  engine.apply_gradients(gradients.all());
  fail = true;
  EXPECT_EQ(variable(engine, "t", 2, 1), (F{-1, 4}));
}

}  // namespace
}  // namespace embertable
