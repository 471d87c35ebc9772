// Engines whose hosts are processes of their own, here threads with an exchange each: they give
// what one process gives, and what fails on one of them is an error on all.
#include "testing/exchange/processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

#include "checkpoint/file.h"
#include "checkpoint/reader.h"
#include "checkpoint/use_opened.h"
#include "embertable/embertable.h"
#include "embertable/tensorflow/parameters.h"
#include "embertable/variables/sharded_variable.h"
#include "exchange/threads_exchange.h"
#include "step/message.h"
#include "testing/exchange/altered_exchange.h"
#include "testing/refusal.h"
#include "testing/temporary_directory.h"

namespace embertable {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::int32_t kReplicas = 12;
constexpr std::int64_t kSamples = 6;

/// The tables of which every host has all rows.
enum class Replicated { kNone, kUsers, kAll };

struct Kind {
  Sharding sharding = Sharding::kDiv;
  bool pipelined = false;
  GradientPolicy policy = GradientPolicy::kAllow;
  Replicated replicated = Replicated::kNone;
  bool accumulate = true;
  bool variable_batch = false;  ///< replicas bring 1..kSamples samples
  bool count_unique_ids = false;
};

Nested<FeatureConfig> features(const Kind& kind = {}, const LearningRate& films_rate = 0.1) {
  const auto table = [&](const char* name, std::int64_t rows, std::int32_t dim, Combiner combiner,
                         const char* rule, const LearningRate& rate) {
    return make_table(
        {.vocabulary_size = rows,
         .dim = dim,
         .initializer = Initializer::uniform(-1, 1),
         .optimizer = Optimizer(rule, rate, {}, {.use_gradient_accumulation = kind.accumulate}),
         .combiner = combiner,
         .name = name,
         .replicated =
             kind.replicated == Replicated::kAll ||
             (kind.replicated == Replicated::kUsers && std::string_view(name) == "users")});
  };
  const TablePtr films = table("films", 41, 5, Combiner::kSum, "adagrad", films_rate);
  const TablePtr users = table("users", 3, 8, Combiner::kMean, "adam", 0.01);
  return Nested<FeatureConfig>::map(
      {{"liked", FeatureConfig{.table = films, .output_shape = Shape({kSamples})}},
       {"seen", FeatureConfig{.table = films, .output_shape = Shape({kSamples})}},
       {"who", FeatureConfig{.table = users, .output_shape = Shape({kSamples})}}});
}

/// The ragged batch of one replica in one step.
class ReplicaData {
 public:
  ReplicaData(const Kind& kind, std::int64_t step, std::int32_t replica) {
    std::mt19937_64 random(static_cast<std::uint64_t>(1000 * step + replica));
    const std::int64_t samples = kind.variable_batch ? 1 + (step + replica) % kSamples : kSamples;
    for (int f = 0; f < 3; ++f) {
      splits_[f].push_back(0);
      for (std::int64_t s = 0; s < samples; ++s) {
        for (std::uint64_t n = random() % 4; n > 0; --n)
          ids_[f].push_back(static_cast<std::int64_t>(random() % (f == 2 ? 3 : 41)));
        splits_[f].push_back(std::ssize(ids_[f]));
      }
    }
  }
  Batch batch() const {
    std::vector<std::pair<std::string, Nested<FeatureIds>>> leaves;
    for (int f = 0; f < 3; ++f)
      leaves.emplace_back(kNames[f], FeatureIds(RaggedIds{splits_[f], ids_[f]}));
    return {Nested<FeatureIds>::map(std::move(leaves)), {}};
  }

 private:
  static constexpr const char* kNames[] = {"liked", "seen", "who"};
  std::vector<std::int64_t> splits_[3], ids_[3];
};

/// The engine of one process, on its share of the replicas.
class Process {
 public:
  Process(const Kind& kind, std::int32_t hosts, std::shared_ptr<Exchange> exchange,
          const LearningRate& films = 0.1)
      : kind_(kind),
        strategy_(make_strategy({.hosts = hosts,
                                 .replicas_per_host = kReplicas / hosts,
                                 .sharding = kind.sharding,
                                 .executor = make_thread_pool(1),
                                 .exchange = std::move(exchange)})),
        engine_(features(kind, films), Optimizer("sgd", 0.1), strategy_,
                {.pipeline_execution_with_tensor_core = kind.pipelined,
                 .gradient_policy = kind.policy,
                 .variable_batch = kind.variable_batch,
                 .count_unique_ids = kind.count_unique_ids,
                 .seed = 7}) {}

  Embedding& engine() { return engine_; }
  const EngineStrategy& strategy() const { return *strategy_; }

  void enqueue(std::int64_t step) {
    std::vector<ReplicaData> data;
    std::vector<Batch> batches;
    for (std::int32_t r = 0; r < strategy_->local_replicas(); ++r)
      data.emplace_back(kind_, step, strategy_->first_replica() + r);
    for (const ReplicaData& one : data) batches.push_back(one.batch());
    engine_.enqueue(batches);
  }

  /// Looks up a batch outside the queues, or asks for it in no memory.
  void look_up(std::int64_t step, bool into_nothing = false) {
    std::vector<ReplicaData> data;
    std::vector<Batch> batches;
    for (std::int32_t r = 0; r < strategy_->local_replicas(); ++r)
      data.emplace_back(kind_, step, strategy_->first_replica() + r);
    for (const ReplicaData& one : data) batches.push_back(one.batch());
    if (into_nothing)
      engine_.look_up(batches, std::span<const std::span<float>>(), false);
    else
      engine_.look_up(batches, false);
  }

  /// Applies gradients that the activations give. `spoil` adds something to the first number.
  void finish(const Activations& activations, float spoil = 0) {
    std::vector<Nested<Gradient>> gradients;
    std::vector<std::vector<float>> kept;
    for (std::int32_t r = 0; r < strategy_->local_replicas(); ++r) {
      std::vector<Gradient> leaves;
      for (std::int64_t f = 0; f < 3; ++f) {
        const std::span<const float> values = activations(f, r).values;
        std::vector<float>& gradient = kept.emplace_back(values.begin(), values.end());
        for (float& g : gradient) g = 0.1f * g - 0.01f;
        gradient[0] += spoil;
        leaves.push_back({.values = gradient});
      }
      gradients.emplace_back(engine_.feature_config().structure(), std::move(leaves));
    }
    engine_.apply_gradients(gradients);
  }

  /// Looks up row 0 everywhere, but `id` in the last replica's 'liked'.
  LookupToken look_up_one(std::int64_t id) {
    const std::vector<std::int64_t> splits = {0, 1, 1, 1, 1, 1, 1}, zero = {0}, told = {id};
    std::vector<Batch> batches;
    for (std::int32_t r = 0; r < strategy_->local_replicas(); ++r) {
      const FeatureIds zeros(RaggedIds{splits, zero});
      const FeatureIds ids(RaggedIds{splits, r + 1 == strategy_->local_replicas() ? told : zero});
      batches.push_back(
          {Nested<FeatureIds>::map({{"liked", ids}, {"seen", zeros}, {"who", zeros}}), {}});
    }
    return std::move(engine_.look_up(batches, true).token);
  }

  void step(std::int64_t number) {
    enqueue(number);
    finish(engine_.dequeue());
  }

 private:
  const Kind kind_;
  StrategyPtr strategy_;
  Embedding engine_;
};

/// Runs body(host, process) on `hosts` threads that are processes to each other.
void run_processes(const Kind& kind, std::int32_t hosts,
                   const std::function<void(std::int32_t, Process&)>& body) {
  std::vector<std::unique_ptr<Exchange>> exchanges = make_threads_exchange(hosts);
  std::vector<std::thread> threads;
  for (std::int32_t host = 0; host < hosts; ++host) {
    threads.emplace_back([&, host] {
      Process process(kind, hosts, std::move(exchanges[host]));
      body(host, process);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

std::string alone(const Kind& kind, std::int64_t steps) {
  Process process(kind, 1, nullptr);
  for (std::int64_t i = 0; i < steps; ++i) process.step(i);
  return process.engine().digest();
}

class ProcessesOf
    : public testing::TestWithParam<std::tuple<std::int32_t, Sharding, bool, Replicated>> {
 protected:
  const std::int32_t hosts = std::get<0>(GetParam());
  const Kind kind = {.sharding = std::get<1>(GetParam()),
                     .pipelined = std::get<2>(GetParam()),
                     .replicated = std::get<3>(GetParam())};
};

TEST_P(ProcessesOf, GiveWhatOneProcessGives) {
  const std::string expected = alone(kind, 5);
  run_processes(kind, hosts, [&](std::int32_t, Process& process) {
    for (std::int64_t i = 0; i < 5; ++i) process.step(i);
    EXPECT_EQ(process.engine().digest(), expected);
    EXPECT_EQ(process.engine().step(), 5);
  });
}

TEST_P(ProcessesOf, SaveWhatAnyNumberOfHostsRestores) {
  const TemporaryDirectory run;
  Process uninterrupted(kind, 1, nullptr);
  for (std::int64_t i = 0; i < 3; ++i) uninterrupted.step(i);
  const std::string half =
      uninterrupted.engine().digest();  // runs a pending update, as a save does
  for (std::int64_t i = 3; i < 6; ++i) uninterrupted.step(i);
  const std::string whole = uninterrupted.engine().digest();
  run_processes(kind, hosts, [&](std::int32_t host, Process& process) {
    for (std::int64_t i = 0; i < 3; ++i) process.step(i);
    const auto saved =
        process.engine().save(run.path(), {.json = "{\"host\": " + std::to_string(host) + "}"});
    EXPECT_EQ(saved, run.path() / "step_000000000003");
  });
  EXPECT_EQ(digest_checkpoint(run.path()), half);
  EXPECT_EQ(read_saved_state(run.path()).caller.json, "{\"host\": 0}");
  for (const std::int32_t others : {1, 2, 3}) {
    Kind other = kind;  // what is replicated is no part of a checkpoint
    if (others == 3)
      other.replicated =
          kind.replicated == Replicated::kNone ? Replicated::kAll : Replicated::kNone;
    run_processes(other, others, [&](std::int32_t, Process& process) {
      if (others == 2) process.engine().build();  // the others make their tables as they read
      EXPECT_EQ(process.engine().restore(run.path()).step, 3);
      process.engine().build();
      EXPECT_EQ(process.engine().digest(), half);
      for (std::int64_t i = 3; i < 6; ++i) process.step(i);
      EXPECT_EQ(process.engine().digest(), whole);
    });
  }
}

TEST_P(ProcessesOf, ReadAndAssignRowsOfEachOther) {
  const auto rows = [](Embedding& engine, std::vector<std::int64_t> ids) {
    std::vector<float> values(ids.size() * 5);
    engine.read_rows("films/accumulators", ids, values);
    return values;
  };
  Process one(kind, 1, nullptr);
  one.step(0);
  std::vector<std::int64_t> all(41);
  std::iota(all.begin(), all.end(), 0);
  const std::vector<float> expected = rows(one.engine(), all);
  run_processes(kind, hosts, [&](std::int32_t host, Process& process) {
    process.step(0);
    EXPECT_EQ(rows(process.engine(), all), expected);
    // Each asks for rows of its own, one of them twice.
    const std::int64_t mine = host % 41;
    const std::vector<float> two = rows(process.engine(), {mine, 40, mine});
    EXPECT_TRUE(std::equal(two.begin(), two.begin() + 5, expected.begin() + mine * 5));
    EXPECT_TRUE(std::equal(two.begin(), two.begin() + 5, two.begin() + 10));
    process.engine().assign_rows("films/accumulators", std::vector<std::int64_t>{40 - mine},
                                 std::vector<float>(5, static_cast<float>(host)));
    for (std::int32_t h = 0; h < hosts; ++h)
      EXPECT_EQ(rows(process.engine(), {40 - h % 41})[4], static_cast<float>(h));
    EXPECT_THROW(rows(process.engine(), {41}), IndexError);
  });
}

INSTANTIATE_TEST_SUITE_P(
    All, ProcessesOf,
    testing::Combine(testing::Values(1, 2, 3, 6), testing::Values(Sharding::kDiv, Sharding::kMod),
                     testing::Bool(),
                     testing::Values(Replicated::kNone, Replicated::kUsers, Replicated::kAll)));

// Tables of which every host has all rows.

TEST(ReplicatedTables, GiveTheSameBitsWithoutAccumulation) {
  const std::string expected = alone({.accumulate = false}, 3);
  const Kind kind = {.replicated = Replicated::kAll, .accumulate = false};
  run_processes(kind, 3, [&](std::int32_t, Process& process) {
    for (std::int64_t i = 0; i < 3; ++i) process.step(i);
    EXPECT_EQ(process.engine().digest(), expected);
  });
}

std::vector<float> all_rows(Embedding& engine, const std::string& variable, std::int32_t dim) {
  std::vector<std::int64_t> ids(engine.tables()[dim == 5 ? 0 : 1].vocabulary_size);
  std::iota(ids.begin(), ids.end(), 0);
  std::vector<float> values(ids.size() * dim);
  engine.read_rows(variable, ids, values);
  return values;
}

TEST(ReplicatedTables, HaveTheSameBitsOnEveryHost) {
  std::vector<std::vector<float>> copies(3);
  run_processes({.replicated = Replicated::kAll}, 3, [&](std::int32_t host, Process& process) {
    for (std::int64_t i = 0; i < 3; ++i) process.step(i);
    // Rows of the last host stay in every copy where several hosts assign the same.
    process.engine().assign_rows("films", std::vector<std::int64_t>{host, 40},
                                 std::vector<float>(10, static_cast<float>(host)));
    for (const char* variable : {"films", "films/accumulators"})
      for (const float value : all_rows(process.engine(), variable, 5))
        copies[host].push_back(value);
    for (const char* variable : {"users", "users/momenta", "users/velocities"})
      for (const float value : all_rows(process.engine(), variable, 8))
        copies[host].push_back(value);
  });
  EXPECT_EQ(copies[0][5], 1);
  EXPECT_EQ(copies[0][40 * 5], 2);
  EXPECT_EQ(copies[1], copies[0]);
  EXPECT_EQ(copies[2], copies[0]);
}

/// Notes how many bytes its host sends to the others in each stage, and the rounds that travel
/// ahead of their steps.
class WatchedExchange final : public Exchange {
 public:
  explicit WatchedExchange(std::unique_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}
  std::int32_t host() const noexcept override { return exchange_->host(); }
  std::int32_t hosts() const noexcept override { return exchange_->hosts(); }
  void start(Channel channel, const Stage& stage, std::span<const ByteSpan> send) override {
    for (std::size_t host = 0; host < send.size(); ++host)
      if (std::cmp_not_equal(host, this->host()))
        bytes[std::string(stage.what)] += send[host].size();
    stages.insert(to_string(stage));
    if (channel == Channel::kAhead) started.push_back(to_string(stage));
    exchange_->start(channel, stage, send);
  }
  void finish(Channel channel, std::span<ByteSpan> received) override {
    exchange_->finish(channel, received);
    if (channel == Channel::kAhead) ++finished;
  }
  bool is_open(Channel channel) const noexcept override { return exchange_->is_open(channel); }
  GivenUp abort(std::string_view reason) override { return exchange_->abort(reason); }

  std::map<std::string, std::size_t> bytes;
  std::set<std::string> stages;
  std::vector<std::string> started;
  int finished = 0;

 private:
  std::unique_ptr<Exchange> exchange_;
};

TEST(ReplicatedTables, AreLookedUpWithoutAMessage) {
  for (const Replicated replicated : {Replicated::kNone, Replicated::kUsers, Replicated::kAll}) {
    std::vector<std::unique_ptr<Exchange>> exchanges = make_threads_exchange(2);
    std::vector<std::thread> threads;
    for (std::int32_t host = 0; host < 2; ++host) {
      threads.emplace_back([&, host] {
        const auto watched = std::make_shared<WatchedExchange>(std::move(exchanges[host]));
        Process process({.replicated = replicated}, 2, watched);
        process.step(0);
        const bool silent = replicated == Replicated::kAll;
        EXPECT_EQ(watched->bytes["row numbers"] == 0, silent);
        // What remains says whether the host has its next batch.
        EXPECT_EQ(std::cmp_equal(watched->bytes["rows"], message_bytes<std::int64_t>(1)), silent);
        EXPECT_GT(watched->bytes["sums of gradients"], 0u);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

/// Two hosts of one process, each with a replica of two samples. Row r of the table is all r.
class Words {
 public:
  static constexpr std::int64_t kRows = 50'000;

  explicit Words(bool replicated) : engine(make(replicated)) { engine.build(2); }

  Activations look_up(const std::vector<std::int64_t>& first,
                      const std::vector<std::int64_t>& second) {
    const auto batch = [](const std::vector<std::int64_t>& ids) {
      return Batch{Nested<FeatureIds>(FeatureIds(DenseIds{ids, {}})), {}};
    };
    engine.enqueue(std::vector<Batch>{batch(first), batch(second)});
    return engine.dequeue();
  }
  StepStatistics::Table counts() const { return engine.last_step().tables[0]; }

  Embedding engine;

 private:
  static Embedding make(bool replicated) {
    const TablePtr words = make_table({.vocabulary_size = kRows,
                                       .dim = 16,
                                       .initializer = Initializer::row_id(),
                                       .name = "words",
                                       .replicated = replicated});
    const StrategyPtr strategy =
        make_strategy({.hosts = 2, .sharding = Sharding::kMod, .executor = make_inline_executor()});
    return Embedding(Nested<FeatureConfig>(FeatureConfig{.table = words}), Optimizer("sgd", 1.0),
                     strategy, {.count_unique_ids = true});
  }
};

TEST(ReplicatedTables, TakeTheirMemoryOnceForEachHost) {
  const Words replicated(true), sharded(false);
  constexpr std::int64_t kBytes = Words::kRows * 16 * 4;
  EXPECT_GE(replicated.engine.memory().entries[0].bytes, 2 * kBytes);
  EXPECT_LT(sharded.engine.memory().entries[0].bytes, 2 * kBytes);
  EXPECT_EQ(replicated.engine.digest(), sharded.engine.digest());
}

TEST(ReplicatedTables, AreViewedAsOneCopyInTheOrderOfTheirRows) {
  Words words(true);
  const ShardedVariable view = words.engine.sharded_variable("words");
  EXPECT_EQ(view.shape(), Shape({Words::kRows, 16}));
  EXPECT_EQ(view.variables().size(), 1u);
  EXPECT_FALSE(view.assignable());
}

TEST(ReplicatedTables, CountTheirRowsOnce) {
  Words words(true);
  words.look_up({1, 4}, {4, 3});
  EXPECT_EQ(words.counts().unique_rows, 3);
  const std::vector<float> ones(32, 1);
  const Nested<Gradient> gradient(Gradient{.values = ones});
  words.engine.apply_gradients(std::vector<Nested<Gradient>>{gradient, gradient});
  EXPECT_EQ(words.counts().unique_rows, 3);
  EXPECT_EQ(words.counts().rows_touched, 3);
  const Activations after = words.look_up({4, 1}, {4, 1});
  for (std::int32_t replica = 0; replica < 2; ++replica) {
    EXPECT_EQ(after(0, replica).values[0], 2);
    EXPECT_EQ(after(0, replica).values[16], 0);
  }
}

TEST(ReplicatedTables, AreLoadedIntoEveryCopyByShards) {
  Words words(true);
  const ShardOperation last = {.algorithm = "StochasticGradientDescent",
                               .table_id = 0,
                               .num_shards = Words::kRows,
                               .shard_id = 7};
  std::vector<Matrix> rows = retrieve_parameters(words.engine, last);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].values, std::vector<float>(16, 7));
  rows[0].values.assign(16, 70);
  const MatrixView view = {rows[0].values, rows[0].shape};
  load_parameters(words.engine, last, std::span(&view, 1));
  const Activations after = words.look_up({7, 7}, {8, 7});
  EXPECT_EQ(after(0, 0).values[0], 70);
  EXPECT_EQ(after(0, 1).values[0], 8);
  EXPECT_EQ(after(0, 1).values[16], 70);
}

/// What three steps of eight replicas leave. Row 17 has two of three entries.
struct Crowd {
  std::string digest;
  std::vector<std::int64_t> ids;  ///< and sums: what the rule "none" hands on
  std::vector<float> sums;

  Crowd(const Optimizer& rule, bool replicated, std::shared_ptr<Exchange> exchange) {
    constexpr std::int64_t kRows = 300, kLookups = 3000, kDim = 4;
    const TablePtr words = make_table({.vocabulary_size = kRows,
                                       .dim = kDim,
                                       .initializer = Initializer::uniform(-1, 1),
                                       .name = "words",
                                       .replicated = replicated});
    const StrategyPtr strategy = make_strategy({.replicas_per_host = exchange ? 1 : 8,
                                                .executor = make_thread_pool(2),
                                                .exchange = std::move(exchange)});
    Embedding engine(Nested<FeatureConfig>(FeatureConfig{.table = words}), rule, strategy,
                     {.tuning = {.bucket_bytes = 64, .inline_floats = 0}});
    for (std::int64_t step = 0; step < 3; ++step) {
      const std::int32_t local = strategy->local_replicas();
      std::vector<std::vector<std::int64_t>> looked_up(local);
      std::vector<std::vector<float>> gradients(local);
      std::vector<Batch> batches;
      std::vector<Nested<Gradient>> trees;
      for (std::int32_t r = 0; r < local; ++r) {
        const std::int64_t replica = strategy->first_replica() + r;
        for (std::int64_t i = 0; i < kLookups; ++i)
          looked_up[r].push_back(i % 3 != 0 ? 17 : (i * 7 + replica * 13 + step * 5) % kRows);
        for (std::int64_t i = 0; i < kLookups * kDim; ++i)
          gradients[r].push_back(1.0f / static_cast<float>(i % 11 + replica + 3));
        batches.push_back({Nested<FeatureIds>(FeatureIds(DenseIds{looked_up[r], {}})), {}});
        trees.emplace_back(Gradient{.values = gradients[r]});
      }
      engine.enqueue(batches);
      engine.dequeue();
      engine.apply_gradients(trees);
    }
    if (rule.rule() == "none") {
      GradientSumsOfTable found = engine.gradient_sums("words");
      ids = std::move(found.ids);
      sums = std::move(found.sums);
    }
    digest = engine.digest();
  }
};

Optimizer halving_rule() {
  return Optimizer::custom({.name = "halving",
                            .slot_names = {"last"},
                            .slot_initializers = {Initializer::constant(0.5f)},
                            .function = CustomRule::Rows([](const CustomRow& row) {
                              for (std::size_t c = 0; c < row.row.size(); ++c) {
                                row.slot[0][c] = row.slot[0][c] / 2 + row.gradient[c];
                                row.row[c] -= row.step.learning_rate * row.slot[0][c];
                              }
                            })},
                           0.125);
}

TEST(ReplicatedTables, GiveTheSameBitsOnEightHostsToRulesOfTheCallerAndSumsOfGradients) {
  for (const Optimizer& rule : {halving_rule(), Optimizer("none", 0), Optimizer("adagrad", 0.1)}) {
    const Crowd expected(rule, false, nullptr);
    EXPECT_EQ(expected.sums.empty(), rule.rule() != "none");
    for (const bool replicated : {true, false}) {
      std::vector<std::shared_ptr<Exchange>> exchanges = exchanges_of(8);
      std::vector<std::optional<Crowd>> crowds(8);
      std::vector<std::thread> threads;
      for (std::size_t host = 0; host < 8; ++host)
        threads.emplace_back(
            [&, host] { crowds[host].emplace(rule, replicated, exchanges[host]); });
      for (std::thread& thread : threads) thread.join();
      std::vector<std::int64_t> ids;  // Shards follow each other.
      std::vector<float> sums;
      for (const std::optional<Crowd>& one : crowds) {
        EXPECT_EQ(one->digest, expected.digest);
        if (replicated) ids.clear(), sums.clear();
        ids.insert(ids.end(), one->ids.begin(), one->ids.end());
        sums.insert(sums.end(), one->sums.begin(), one->sums.end());
        if (replicated) {
          EXPECT_EQ(ids, expected.ids);
          EXPECT_EQ(sums, expected.sums);
        }
      }
      EXPECT_EQ(ids, expected.ids);
      EXPECT_EQ(sums, expected.sums);
    }
  }
}

TEST(ReplicatedTables, AreReplicatedOnAllHostsOrOnNone) {
  std::vector<std::unique_ptr<Exchange>> exchanges = make_threads_exchange(2);
  std::vector<std::thread> threads;
  for (std::int32_t host = 0; host < 2; ++host) {
    threads.emplace_back([&, host] {
      Process process({.replicated = host == 0 ? Replicated::kUsers : Replicated::kNone}, 2,
                      std::move(exchanges[host]));
      process.engine().build();
      EXPECT_THAT(refusal<ValueError>([&] { process.engine().digest(); }),
                  HasSubstr("host 1 has 'table 'users': replicated = false', host 0 has 'table "
                            "'users': replicated = true'"));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// An error on one process is one on all, which names it; then all go on, or save.

TEST(ProcessErrors, ABadGradientChangesNothingAnywhere) {
  const Kind kind = {.policy = GradientPolicy::kError};
  const std::string expected = alone(kind, 2);
  run_processes(kind, 3, [&](std::int32_t host, Process& process) {
    process.step(0);
    process.enqueue(1);
    const Activations activations = process.engine().dequeue();
    const std::string error = refusal<std::logic_error>([&] {
      process.finish(activations, host == 1 ? std::numeric_limits<float>::quiet_NaN() : 0.0f);
    });
    EXPECT_THAT(error, HasSubstr("must be finite"));
    EXPECT_EQ(error.starts_with("host 1: feature 'liked', replica 0"), host != 1) << error;
    process.finish(activations);
    EXPECT_EQ(process.engine().digest(), expected);
  });
}

TEST(ProcessErrors, ARowThatIsNotThereIsNamedOnAll) {
  run_processes({}, 3, [&](std::int32_t host, Process& process) {
    process.engine().build();
    std::vector<float> row(5);
    const std::vector<std::int64_t> ids = {host == 2 ? 41 : 0};
    EXPECT_THAT(refusal<std::exception>([&] { process.engine().read_rows("films", ids, row); }),
                HasSubstr("row must be 0 <= row < 41, got 41"));
    EXPECT_NO_THROW(process.engine().digest());
  });
}

/// Returns the error of each of two processes that make every kind of call, where the exchange of
/// the second fails as it starts a round; "" for none.
std::array<std::string, 2> errors_without_a_round(int round, const std::filesystem::path& run) {
  const std::vector<std::shared_ptr<Exchange>> exchanges = exchanges_of(2);
  std::array<std::string, 2> errors;
  std::vector<std::thread> threads;
  for (std::int32_t host = 0; host < 2; ++host) {
    threads.emplace_back([&, host] {
      const auto altered = std::make_shared<AlteredExchange>(*exchanges[host]);
      altered->before_start = [host, left = round](Channel, const Stage&) mutable {
        if (host == 1 && left-- == 0) throw std::runtime_error("the cable is pulled");
      };
      try {
        Process process({}, 2, altered);
        process.step(0);
        std::vector<float> row(5);
        const std::vector<std::int64_t> ids = {1};
        process.engine().read_rows("films", ids, row);
        process.engine().assign_rows("films", ids, row);
        process.engine().assign_step(7);
        const CheckpointRun opened(run, process.strategy());
        process.engine().save(opened);
        process.engine().restore(run);
        process.engine().digest();
      } catch (const std::exception& error) {
        errors[host] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

TEST(ProcessErrors, AnExchangeThatFailsInAnyRoundIsToldToTheOthers) {
  int round = 0;
  for (;; ++round) {
    const TemporaryDirectory run;
    const auto [first, second] = errors_without_a_round(round, run.path());
    if (second.empty()) {
      EXPECT_EQ(first, "");
      break;
    }
    EXPECT_THAT(second, HasSubstr("the cable is pulled")) << "round " << round;
    EXPECT_THAT(first, HasSubstr("host 1: the cable is pulled")) << "round " << round;
  }
  EXPECT_GT(round, 20);
}

using Damage = std::function<void(std::vector<std::byte>&)>;

/// Runs two processes. In the first, body's call `damage(what, how)` changes the next message that
/// the second sends for `what`.
void run_damaged(
    const std::function<void(std::int32_t host, Process&,
                             const std::function<void(std::string_view what, Damage how)>& damage)>&
        body) {
  const std::vector<std::shared_ptr<Exchange>> exchanges = exchanges_of(2);
  std::vector<std::thread> threads;
  for (std::int32_t host = 0; host < 2; ++host) {
    threads.emplace_back([&, host] {
      const auto altered = std::make_shared<AlteredExchange>(*exchanges[host]);
      Process process({}, 2, altered);
      body(host, process, [&](std::string_view what, const Damage& how) {
        if (host != 0) return;
        altered->alter = [=, done = std::make_shared<bool>(false)](
                             std::string_view stage, std::int32_t,
                             std::vector<std::byte>& message) {
          if (stage == what && !std::exchange(*done, true)) how(message);
        };
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
}

/// Expects what the first process says of a message of the second, and that the second is told.
void expect_damaged(std::int32_t host, const std::string& subject,
                    const std::function<void()>& call) {
  if (host == 0)
    EXPECT_THAT(refusal<IoError>(call), StartsWith("host 1: " + subject));
  else
    EXPECT_THAT(refusal<GivenUp>(call), StartsWith("host 0: host 1: " + subject));
}

TEST(ProcessErrors, ADamagedMessageOfAStepIsOneOnAllAndTheStepIsMadeAgain) {
  const std::string expected = alone({}, 2);
  const Damage shorten = [](std::vector<std::byte>& message) {
    message.resize(message.size() - 8);
  };
  run_damaged([&](std::int32_t host, Process& process, const auto& damage) {
    process.step(0);
    process.enqueue(1);
    for (const char* what : {"row numbers", "rows"}) {
      damage(what, shorten);
      expect_damaged(host, std::string(what) + " of step 2: the message must hold",
                     [&] { process.engine().dequeue(); });
    }
    const Activations activations = process.engine().dequeue();
    damage("sums of gradients", shorten);
    expect_damaged(host, "sums of gradients of step 2: the message must hold",
                   [&] { process.finish(activations); });
    process.finish(activations);
    EXPECT_EQ(process.engine().digest(), expected);
  });
}

TEST(ProcessErrors, ADamagedRowNumberIsOneOnAllAndChangesNothing) {
  const std::string expected = alone({}, 1);
  run_damaged([&](std::int32_t host, Process& process, const auto& damage) {
    process.step(0);
    std::vector<float> row(5);
    const std::vector<std::int64_t> first = {0};  // a row of host 0
    for (const std::int64_t bad : {-1, 40, 41}) {
      const Damage change = [=](std::vector<std::byte>& message) {
        ASSERT_GE(message.size(), 16u);
        std::memcpy(message.data() + 8, &bad, sizeof bad);
      };
      const std::string rule =
          ": a row must be one of 'films' that host 0 holds, got " + std::to_string(bad);
      damage("numbers of rows to read", change);
      expect_damaged(host, "numbers of rows to read" + rule,
                     [&] { process.engine().read_rows("films", first, row); });
      process.engine().read_rows("films", first, row);
      damage("rows to assign", change);
      expect_damaged(host, "rows to assign" + rule,
                     [&] { process.engine().assign_rows("films", first, row); });
    }
    EXPECT_EQ(process.engine().digest(), expected);
  });
}

TEST(ProcessErrors, AStepNumberIsAssignedOnAllOrOnNone) {
  run_processes({}, 3, [&](std::int32_t host, Process& process) {
    process.step(0);
    EXPECT_THAT(refusal<std::exception>([&] { process.engine().assign_step(host == 1 ? -1 : 7); }),
                HasSubstr("step must be 0 to 2^62, got -1"));
    EXPECT_EQ(process.engine().step(), 1);
    EXPECT_THROW(process.engine().assign_step(host == 2 ? 8 : 7), StateError);
    EXPECT_EQ(process.engine().step(), 1);
    process.engine().assign_step(7);
    EXPECT_EQ(process.engine().step(), 7);
    process.step(1);
    EXPECT_EQ(process.engine().step(), 8);
  });
}

TEST(ProcessErrors, ASaveThatCannotBeginIsOneOnAll) {
  const TemporaryDirectory directory;
  const CheckpointRun held(directory.path());
  run_processes({}, 2, [&](std::int32_t, Process& process) {
    process.step(0);
    EXPECT_THAT(refusal<StateError>([&] { process.engine().save(directory.path()); }),
                HasSubstr("cannot save there"));
    process.step(1);
  });
}

TEST(ProcessErrors, ARunThatAnotherHostHoldsTakesNoSaveOfAnEngineByItself) {
  const TemporaryDirectory directory;
  run_processes({}, 2, [&](std::int32_t host, Process& process) {
    const CheckpointRun run(directory.path(), process.strategy());
    if (host == 0) return;
    Embedding plain(process.engine().feature_config(), {}, nullptr);
    plain.build();
    EXPECT_THAT(refusal<StateError>([&] { plain.save(run); }),
                HasSubstr("only engines of several hosts save there"));
  });
}

TEST(ProcessErrors, ATokenThatWasUsedOnOneIsAnErrorOnAll) {
  run_processes({}, 2, [&](std::int32_t host, Process& process) {
    process.step(0);
    LookupToken token = process.look_up_one(0);
    if (host == 1) token = LookupToken();
    const std::vector<Nested<Gradient>> none(
        process.strategy().local_replicas(),
        Nested<Gradient>(process.engine().feature_config().structure(), std::vector<Gradient>(3)));
    EXPECT_THAT(
        refusal<StateError>([&] { process.engine().apply_gradients(std::move(token), none); }),
        HasSubstr("the token is empty, or was used"));
    process.step(1);
  });
}

/// What hosts say of which the second has another seed, option or table.
struct Difference {
  std::uint64_t seed = 1;
  bool pipelined = false;
  std::int32_t dim = 4;
  std::int64_t samples = 6;
  const char* rule = "sgd";
};

std::string refusal_of(const Difference& second) {
  const std::vector<std::shared_ptr<Exchange>> exchanges = exchanges_of(2);
  std::string errors[2];
  std::vector<std::thread> threads;
  for (std::int32_t host = 0; host < 2; ++host) {
    threads.emplace_back([&, host] {
      const Difference mine = host == 0 ? Difference() : second;
      Embedding engine(
          Nested<FeatureConfig>::map(
              {{"liked",
                FeatureConfig{
                    .table = make_table({.vocabulary_size = 9, .dim = mine.dim, .name = "films"}),
                    .output_shape = Shape({mine.samples})}}}),
          Optimizer(mine.rule, 0.1), make_strategy({.exchange = exchanges[host]}),
          {.pipeline_execution_with_tensor_core = mine.pipelined, .seed = mine.seed});
      engine.build();
      errors[host] = refusal<ValueError>([&] { engine.digest(); });
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(errors[0], errors[1]);
  return errors[0];
}

TEST(ProcessErrors, OfConfigurationsThatDifferNameTheKey) {
  const std::string begin = "hosts must have one configuration: host 1 has ";
  EXPECT_EQ(refusal_of({.seed = 2}), begin + "'engine.seed = 2', host 0 has 'engine.seed = 1'");
  EXPECT_EQ(refusal_of({.pipelined = true}), begin +
                                                 "'engine.pipeline_execution = true', "
                                                 "host 0 has 'engine.pipeline_execution = false'");
  EXPECT_EQ(refusal_of({.dim = 40}), begin + "'tables.0.dim = 40', host 0 has 'tables.0.dim = 4'");
  EXPECT_EQ(refusal_of({.samples = 7}), begin +
                                            "'features.0.output_shape.0 = 7', "
                                            "host 0 has 'features.0.output_shape.0 = 6'");
  EXPECT_THAT(refusal_of({.rule = "adagrad"}), HasSubstr("tables.0.optimizer.rule = \"adagrad\""));
}

TEST(ProcessErrors, ANameThatOneHostDoesNotKnowIsOneOnAll) {
  const std::string expected = alone({}, 1);
  run_processes({}, 3, [&](std::int32_t host, Process& process) {
    process.step(0);
    std::vector<float> row(5);
    const std::vector<std::int64_t> ids = {0};
    const char* name = host == 1 ? "flims" : "films";
    const std::function<void()> calls[] = {
        [&] { process.engine().read_rows(name, ids, row); },
        [&] { process.engine().assign_rows(name, ids, row); },
    };
    for (const auto& call : calls) {
      const std::string error = refusal<std::exception>(call);
      EXPECT_THAT(error, HasSubstr("flims"));
      EXPECT_EQ(error.starts_with("host 1: "), host != 1) << error;
    }
    EXPECT_EQ(process.engine().digest(), expected);
  });
}

TEST(ProcessErrors, ShardsOfTablesAreNotMoved) {
  run_processes({}, 2, [&](std::int32_t, Process& process) {
    Embedding& engine = process.engine();
    process.step(0);
    const std::string before = engine.digest();
    HostVariables variables(engine);
    const std::function<void()> calls[] = {
        [&] { retrieve_all_parameters(engine, 1, 0); },
        [&] {
          retrieve_parameters(engine, {.algorithm = "Adagrad", .table_id = 0, .num_shards = 1});
        },
        [&] { load_all_parameters(engine, 1, 0, {}); },
        [&] { variables.retrieve(); },
    };
    for (const auto& call : calls)
      EXPECT_THAT(refusal<NotImplemented>(call), HasSubstr("where hosts are several processes"));
    EXPECT_EQ(engine.digest(), before);
  });
}

TEST(ProcessErrors, ARowWiseSlotIsReadWhereAHostHasNoRow) {
  const auto slot_of = [](std::shared_ptr<Exchange> exchange) {
    const TablePtr table = make_table({.vocabulary_size = 2,
                                       .dim = 4,
                                       .optimizer = Optimizer("rowwise_adagrad", 0.1),
                                       .combiner = Combiner::kSum,
                                       .name = "t"});
    const StrategyPtr strategy = make_strategy({.exchange = std::move(exchange)});
    Embedding engine(Nested<FeatureConfig>(FeatureConfig{.table = table}), std::nullopt, strategy);
    engine.build(1);
    const std::vector<std::int64_t> ids = {1};
    engine.assign_rows("t/accumulators", ids, std::vector<float>{5});
    std::vector<float> read(1);
    engine.read_rows("t/accumulators", ids, read);
    return read[0];
  };
  std::vector<std::thread> threads;
  for (const std::shared_ptr<Exchange>& exchange : exchanges_of(3))
    threads.emplace_back([&, exchange] { EXPECT_EQ(slot_of(exchange), 5); });
  for (std::thread& thread : threads) thread.join();
}

TEST(ProcessErrors, ACallbackThatThrowsOnOneHostChangesNothingAnywhere) {
  const auto train = [](std::int32_t hosts, std::shared_ptr<Exchange> exchange, bool fails) {
    int asked = 0;
    const std::int32_t host = exchange ? exchange->host() : 0;
    const LearningRate rate = LearningRate::dynamic([&] {
      if (fails && ++asked == 2 && host == hosts - 1) throw std::runtime_error("no rate today");
      return 0.1;
    });
    Process process({}, hosts, std::move(exchange), rate);
    process.step(0);
    process.enqueue(1);
    const Activations activations = process.engine().dequeue();
    if (fails) {
      const std::string error = refusal<std::exception>([&] { process.finish(activations); });
      EXPECT_THAT(error, HasSubstr("no rate today"));
      EXPECT_EQ(error.starts_with("host " + std::to_string(hosts - 1) + ": "), host != hosts - 1)
          << error;
    }
    process.finish(activations);
    return process.engine().digest();
  };
  const std::string expected = train(1, nullptr, false);
  const std::vector<std::shared_ptr<Exchange>> exchanges = exchanges_of(3);
  std::vector<std::thread> threads;
  for (const std::shared_ptr<Exchange>& exchange : exchanges)
    threads.emplace_back([&, exchange] { EXPECT_EQ(train(3, exchange, true), expected); });
  for (std::thread& thread : threads) thread.join();
}

TEST(ProcessErrors, ABadIdOfALookupIsNamedOnAll) {
  const std::string expected = alone({}, 1);
  run_processes({}, 3, [&](std::int32_t host, Process& process) {
    process.step(0);
    EXPECT_THAT(refusal<std::exception>([&] { process.look_up_one(host == 1 ? 41 : 0); }),
                AllOf(HasSubstr(host == 1 ? "" : "host 1: "), HasSubstr("41")));
    EXPECT_EQ(process.engine().digest(), expected);
  });
}

TEST(ProcessErrors, ALookupIntoMemoryThatDoesNotFitFailsOnAll) {
  const std::string expected = alone({}, 1);
  for (const bool built : {false, true}) {
    run_processes({}, 3, [&](std::int32_t host, Process& process) {
      if (built) process.step(0);
      EXPECT_THAT(refusal<std::exception>([&] { process.look_up(0, host == 1); }),
                  AllOf(HasSubstr(host == 1 ? "" : "host 1: "),
                        HasSubstr(built ? "look_up: out must have one span"
                                        : "look_up: the engine is not built")));
      if (!built) process.step(0);
      EXPECT_EQ(process.engine().digest(), expected);
    });
  }
}

TEST(ProcessErrors, ARunThatOneHostDoesNotSeeIsSavedByNobody) {
  const TemporaryDirectory run, other;
  run_processes({}, 2, [&](std::int32_t host, Process& process) {
    process.step(0);
    const std::string error = refusal<std::exception>(
        [&] { process.engine().save(host == 1 ? other.path() / "missing" : run.path()); });
    EXPECT_THAT(error, HasSubstr("all hosts must share the file system of a run"));
    EXPECT_EQ(error.starts_with("host 1: "), host != 1) << error;
    EXPECT_THAT(refusal<std::exception>([&] {
                  process.engine().restore(host == 1 ? other.path() / "missing" : run.path());
                }),
                testing::Not(testing::IsEmpty()));
    EXPECT_NO_THROW(process.engine().save(run.path()));
    process.step(1);
    EXPECT_EQ(process.engine().restore(run.path()).step, 1);
  });
}

TEST(ProcessErrors, OfHostsThatHaveOpenedOtherStepsChangeNothing) {
  const TemporaryDirectory run;
  run_processes({}, 2, [&](std::int32_t host, Process& process) {
    process.step(0);
    process.engine().save(run.path());
    const std::string digest = process.engine().digest();
    process.step(1);
    process.engine().save(run.path());
    const std::string later = process.engine().digest();
    const auto restore = [&](std::string_view step) {
      const checkpoint::Reader reader(checkpoint::local_files(), run.path() / step);
      checkpoint::restore_opened(process.engine(), reader);
    };
    EXPECT_THAT(refusal<std::exception>(
                    [&] { restore(host == 0 ? "step_000000000002" : "step_000000000001"); }),
                AllOf(HasSubstr("every host must have opened the same step, got "),
                      HasSubstr("step_000000000001 where host 0 has step_000000000002")));
    EXPECT_EQ(process.engine().digest(), later);
    restore("step_000000000001");
    EXPECT_EQ(process.engine().digest(), digest);
  });
}

TEST(ProcessErrors, AStepCanBeAbandoned) {
  const std::string expected = alone({}, 2);
  run_processes({}, 3, [&](std::int32_t host, Process& process) {
    process.step(0);
    process.enqueue(1);
    if (host == 0) {
      process.engine().abandon_step("the reader is broken");
    } else {
      EXPECT_THAT(refusal<StateError>([&] { process.engine().dequeue(); }),
                  HasSubstr("host 0: the reader is broken"));
    }
    process.finish(process.engine().dequeue());
    EXPECT_EQ(process.engine().digest(), expected);
  });
}

// The rows of the next batch are asked for early if all processes have it in their queues.

using WatchedBody = std::function<void(std::int32_t, Process&, const WatchedExchange&)>;

void run_watched(const Kind& kind, std::int32_t hosts, const WatchedBody& body) {
  std::vector<std::unique_ptr<Exchange>> exchanges = make_threads_exchange(hosts);
  std::vector<std::thread> threads;
  for (std::int32_t host = 0; host < hosts; ++host) {
    threads.emplace_back([&, host] {
      const auto exchange = std::make_shared<WatchedExchange>(std::move(exchanges[host]));
      Process process(kind, hosts, exchange);
      body(host, process, *exchange);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(ProcessErrors, OfALookupNameNoTrainingStep) {
  run_watched({}, 2, [](std::int32_t, Process& process, const WatchedExchange& exchange) {
    process.step(0);
    process.look_up(1);
    for (const char* what : {"row numbers", "rows"}) {
      EXPECT_EQ(exchange.stages.count(what), 1u);
      EXPECT_EQ(exchange.stages.count(what + std::string(" of step 1")), 1u);
      EXPECT_EQ(exchange.stages.count(what + std::string(" of step 2")), 0u);
    }
  });
}

TEST(QuestionsAhead, TravelFromOneForwardToTheNext) {
  run_watched({}, 2, [](std::int32_t, Process& process, const WatchedExchange& exchange) {
    process.enqueue(0);
    process.enqueue(1);
    const Activations first = process.engine().dequeue();
    EXPECT_EQ(exchange.started, std::vector<std::string>{"row numbers of step 2"});
    EXPECT_EQ(exchange.finished, 0);
    process.finish(first);
    EXPECT_EQ(exchange.finished, 0);
    process.finish(process.engine().dequeue());
    EXPECT_EQ(exchange.started.size(), 1);
    EXPECT_EQ(exchange.finished, 1);
    EXPECT_EQ(process.engine().digest(), alone({}, 2));
  });
}

TEST(QuestionsAhead, WaitForTheHostThatLacksItsBatch) {
  run_watched({}, 3, [](std::int32_t host, Process& process, const WatchedExchange& exchange) {
    process.enqueue(0);
    if (host != 1) process.enqueue(1);
    process.finish(process.engine().dequeue());
    if (host == 1) process.enqueue(1);
    process.finish(process.engine().dequeue());
    EXPECT_EQ(exchange.started.size(), 0);
    EXPECT_EQ(process.engine().digest(), alone({}, 2));
  });
}

TEST(QuestionsAhead, AreAskedAgainAfterAnError) {
  run_watched({}, 3, [](std::int32_t host, Process& process, const WatchedExchange& exchange) {
    for (const int step : {0, 1, 2}) process.enqueue(step);
    const Activations first = process.engine().dequeue();
    EXPECT_TRUE(exchange.is_open(Channel::kAhead));
    if (host == 2) {
      process.engine().abandon_step("no gradient");
    } else {
      EXPECT_THROW(process.finish(first), StateError);
    }
    EXPECT_FALSE(exchange.is_open(Channel::kAhead));
    process.finish(first);
    for (int step = 1; step < 3; ++step) process.finish(process.engine().dequeue());
    EXPECT_EQ(exchange.started.size(), 2);
    EXPECT_EQ(process.engine().digest(), alone({}, 3));
  });
}

/// Steps with the same calls between them on every process, at random, and with another number of
/// batches in the queues of each.
void step_at_random(std::int32_t host, std::int32_t hosts, Process& process) {
  constexpr std::int64_t kSteps = 12;
  std::mt19937 common(5), mine(static_cast<unsigned>(host));
  std::int64_t queued = 0;
  for (std::int64_t step = 0; step < kSteps; ++step) {
    const std::int64_t most = step + 1 + mine() % 3;
    while (queued < most) process.enqueue(queued++);
    const Activations activations = process.engine().dequeue();
    const unsigned between = common() % 4;
    if (between == 0) process.look_up(step);
    if (between == 1 && hosts > 1) {
      if (host == 1)
        process.engine().abandon_step("a pause");
      else
        EXPECT_THROW(process.finish(activations), StateError);
    }
    process.finish(activations);
    if (between == 2) static_cast<void>(process.engine().digest());
    if (between == 3) static_cast<void>(process.engine().memory());
  }
}

TEST(QuestionsAhead, ChangeNoBitWhateverComesBetween) {
  for (const auto& [pipelined, variable] : {std::pair(false, false), {true, false}, {true, true}}) {
    const Kind kind = {.sharding = Sharding::kMod,
                       .pipelined = pipelined,
                       .variable_batch = variable,
                       .count_unique_ids = variable};
    Process one(kind, 1, nullptr);
    step_at_random(0, 1, one);
    const std::string expected = one.engine().digest();
    run_watched(kind, 3, [&](std::int32_t host, Process& process, const WatchedExchange& exchange) {
      step_at_random(host, 3, process);
      EXPECT_EQ(process.engine().digest(), expected);
      EXPECT_GT(exchange.started.size(), 0);
    });
  }
}

TEST(QuestionsAhead, StayWhileTheEngineSavesAndRestores) {
  const TemporaryDirectory run;
  run_watched({}, 3, [&](std::int32_t, Process& process, const WatchedExchange& exchange) {
    process.enqueue(0);
    process.enqueue(1);
    process.finish(process.engine().dequeue());
    process.engine().save(run.path());
    process.engine().restore(run.path());
    EXPECT_TRUE(exchange.is_open(Channel::kAhead));
    process.finish(process.engine().dequeue());
    EXPECT_EQ(process.engine().digest(), alone({}, 2));
  });
}

TEST(QuestionsAhead, OutliveTheirEngine) {
  std::vector<std::shared_ptr<Exchange>> exchanges;
  for (std::unique_ptr<Exchange>& one : make_threads_exchange(2))
    exchanges.push_back(std::move(one));
  std::vector<std::unique_ptr<Process>> processes(2);
  const auto on_each = [&](const std::function<void(std::int32_t)>& body) {
    std::thread other(body, 1);
    body(0);
    other.join();
  };
  on_each([&](std::int32_t host) {
    processes[host] = std::make_unique<Process>(Kind(), 2, exchanges[host]);
    processes[host]->enqueue(0);
    processes[host]->enqueue(1);
    processes[host]->finish(processes[host]->engine().dequeue());
    EXPECT_TRUE(exchanges[host]->is_open(Channel::kAhead));
  });
  for (std::unique_ptr<Process>& process : processes) process.reset();  // neither waits
  on_each([&](std::int32_t host) {
    Process next(Kind(), 2, exchanges[host]);
    next.step(0);
    next.step(1);
    EXPECT_EQ(next.engine().digest(), alone({}, 2));
  });
}

TEST(ProcessStrategies, ShareNoExchange) {
  const std::shared_ptr<Exchange> exchange = std::move(make_threads_exchange(1)[0]);
  {
    const StrategyPtr first = make_strategy({.exchange = exchange});
    EXPECT_THAT(refusal<ValueError>([&] { make_strategy({.exchange = exchange}); }),
                HasSubstr("in use by another strategy"));
  }
  EXPECT_NO_THROW(make_strategy({.exchange = exchange}));
}

TEST(ProcessStrategies, HaveTheHostsOfTheirExchange) {
  const std::shared_ptr<Exchange> second = std::move(make_threads_exchange(3)[1]);
  EXPECT_THAT(refusal<ValueError>([&] { make_strategy({.hosts = 2, .exchange = second}); }),
              HasSubstr("hosts must be 1 or the 3 of the exchange, got 2"));
  const StrategyPtr strategy = make_strategy({.replicas_per_host = 4, .exchange = second});
  EXPECT_EQ(strategy->options().hosts, 3);
  EXPECT_EQ(strategy->replicas(), 12);
  EXPECT_EQ(strategy->local_replicas(), 4);
  EXPECT_EQ(strategy->first_replica(), 4);
}

}  // namespace
}  // namespace embertable
