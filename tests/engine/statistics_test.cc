// What a step says that it did, against counts by hand and against a recount.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "testing/engine/fixture.h"
#include "testing/executor.h"

namespace embertable {
namespace {

using namespace engine_fixture;
using Table = StepStatistics::Table;
using Ids = std::vector<std::int64_t>;

/// The counts of a table without the number of buckets, which is how work is cut.
std::vector<std::int64_t> counts(const Embedding& engine, std::size_t table) {
  const Table t = engine.last_step().tables[table];
  return {t.entries,    t.unique_rows, t.rows_touched,
          t.empty_rows, t.dropped_ids, t.truncated_entries};
}
using C = std::vector<std::int64_t>;

void apply_ones(Embedding& engine) {
  const Activations activations = engine.dequeue();
  std::vector<Nested<Gradient>> gradients;
  std::vector<std::vector<float>> storage;
  storage.reserve(activations.replicas() * activations.features());
  for (std::int32_t r = 0; r < activations.replicas(); ++r)
    gradients.push_back(all(activations, storage, 1, r));
  engine.apply_gradients(gradients);
}

void train(Embedding& engine, std::span<const Batch> batches) {
  engine.enqueue(batches);
  apply_ones(engine);
}

TEST(StepStatistics, AreThoseCountedByHand) {
  EmbeddingOptions options;
  options.out_of_range = OutOfRange::kDrop;
  const TablePtr videos = video(), users = user();
  const auto features =
      Nested<FeatureConfig>::tuple({feature(videos), feature(videos, 2), feature(users)});
  // videos: rows 0 1 7 7, and sequences 3 - | 7 7 of which one is cut off; users: 99 is dropped
  const Rows bags({{0, 1, 7, 7}, {}}), sequences({{3}, {7, 7, 5}}), friends({{99}, {4, -1}});
  const Batch batch{Nested<FeatureIds>::tuple(
      {FeatureIds(bags.ragged()), FeatureIds(sequences.sparse()), FeatureIds(friends.ragged())})};
  Embedding engine = engine_with(accelerator(), features, sgd(0.1), options);
  engine.enqueue(batch);
  const Activations activations = engine.dequeue();
  EXPECT_EQ(counts(engine, 0), (C{7, 0, 0, 2, 0, 1}));
  EXPECT_EQ(counts(engine, 1), (C{1, 0, 0, 1, 2, 0}));
  std::vector<std::vector<float>> storage;
  engine.apply_gradients(all(activations, storage, 1));
  EXPECT_EQ(counts(engine, 0), (C{7, 4, 4, 2, 0, 1}));
  EXPECT_EQ(counts(engine, 1), (C{1, 1, 1, 1, 2, 0}));
  engine.enqueue(batch, {.training = false});
  engine.dequeue();
  EXPECT_EQ(counts(engine, 0), (C{7, 0, 0, 2, 0, 1}));
}

TEST(StepStatistics, TellTheDistinctIdsOfInferenceWhereAsked) {
  EmbeddingOptions options;
  options.count_unique_ids = true;
  for (const std::int32_t hosts : {1, 2, 4}) {
    Embedding engine = engine_with(accelerator(4, hosts), features(), sgd(0.1), options);
    const std::vector<OwnedBatch> data = owned(4);
    for (int step = 0; step < 3; ++step) {  // marks of a count are gone before the next
      engine.enqueue(ragged_batches(data), {.training = false});
      engine.dequeue();
      EXPECT_EQ(counts(engine, 0), (C{24, 2, 0, 0, 0, 0})) << hosts;
      EXPECT_EQ(counts(engine, 1), (C{16, 4, 0, 0, 0, 0})) << hosts;
    }
    train(engine, ragged_batches(data));
    EXPECT_EQ(counts(engine, 0), (C{24, 2, 2, 0, 0, 0})) << hosts;
  }
}

TEST(StepStatistics, CountSmallOneHotTablesSideBySide) {
  std::vector<FeatureConfig> features;
  std::vector<FeatureIds> ids;
  std::vector<Ids> values;
  for (std::int64_t t = 0; t < 11; ++t) {
    TableConfig table = {.vocabulary_size = 20, .dim = 4, .initializer = counting()};
    table.name = "t" + std::to_string(t);
    features.push_back(feature(make_table(std::move(table))));
    Ids& own = values.emplace_back();
    for (std::int64_t i = 0; i < 40; ++i) own.push_back(i % (t + 1));
  }
  for (const Ids& own : values) ids.push_back(DenseIds{own});
  const Structure structure = Structure::list(std::vector<Structure>(11));
  Embedding engine = engine_with(accelerator(), Nested<FeatureConfig>(structure, features));
  const Batch batch{Nested<FeatureIds>(structure, ids)};
  train(engine, std::span(&batch, 1));
  for (std::int64_t t = 0; t < 11; ++t)
    EXPECT_EQ(counts(engine, static_cast<std::size_t>(t)), (C{40, t + 1, t + 1, 0, 0, 0}));
}

/// Eight replicas, of which the first one has no sample, and 3,000 ids of few rows for each other
/// one: three buckets of at most 8,192 entries.
TEST(StepStatistics, CountBucketsForAllBatchesWhicheverComesFirst) {
  constexpr std::int32_t kReplicas = 8;
  constexpr std::int64_t kSamples = 1000;
  EmbeddingOptions options;
  options.variable_batch = true;
  const TablePtr table = make_table({.vocabulary_size = 2048, .dim = 4, .name = "t"});
  Embedding engine =
      engine_with(accelerator(kReplicas), Nested<FeatureConfig>(feature(table)), sgd(0.1), options);
  engine.build(Nested<Shape>(Shape{kSamples}));
  Ids ids, splits = {0};
  for (std::int64_t i = 1; i <= 3 * kSamples; ++i) {
    ids.push_back(i % 2048);
    if (i % 3 == 0) splits.push_back(i);
  }
  const Ids none, no_splits = {0};
  std::vector<Batch> batches(kReplicas, Batch{Nested<FeatureIds>(RaggedIds{splits, ids}), {}});
  batches[0] = Batch{Nested<FeatureIds>(RaggedIds{no_splits, none}), {}};
  train(engine, batches);
  EXPECT_EQ(engine.last_step().tables[0].buckets, 3);
  for (std::int32_t r = 0; r < kReplicas; ++r)
    engine.enqueue(batches[r], {.device = "TPU:" + std::to_string(r)});
  apply_ones(engine);
  EXPECT_EQ(engine.last_step().tables[0].buckets, 3);
}

TEST(StepStatistics, TellThatARuleStepsEveryRow) {
  const Optimizer adam = Optimizer("adam", 0.1, {{"lazy_adam", false}});
  Embedding engine = engine_with(accelerator(2, 2), features(), adam);
  train(engine, ragged_batches(owned(2)));
  EXPECT_EQ(counts(engine, 0), (C{12, 2, 8, 0, 0, 0}));
  EXPECT_EQ(counts(engine, 1), (C{8, 4, 16, 0, 0, 0}));
}

TEST(StepStatistics, PipelinedTellTheUpdateOfTheBatchBefore) {
  EmbeddingOptions options;
  options.pipeline_execution_with_tensor_core = true;
  Embedding engine =
      engine_with(accelerator(), Nested<FeatureConfig>(feature(user())), sgd(0.1), options);
  const Rows three({{0, 1, 2}}), one(std::vector<Ids>{{5}});
  const auto step = [&](const Rows& rows) {
    const Batch batch{Nested<FeatureIds>(rows.ragged())};
    train(engine, std::span(&batch, 1));
  };
  step(three);
  EXPECT_EQ(counts(engine, 0), (C{3, 0, 0, 0, 0, 0}));
  step(one);
  EXPECT_EQ(counts(engine, 0), (C{1, 0, 3, 0, 0, 0}));
}

/// Random ragged batches on random hosts and replicas, with ids to drop and sequences to cut.
TEST(StepStatistics, AgreeWithARecount) {
  std::mt19937 random(test_seed(5));
  for (int round = 0; round < 60; ++round) {
    const std::int32_t hosts = 1 + static_cast<std::int32_t>(random() % 3);
    const std::int32_t replicas = hosts * (1 + static_cast<std::int32_t>(random() % 2));
    const std::int64_t rows = 1 + random() % 50, samples = 1 + random() % 40, length = random() % 4;
    TableConfig table = {.vocabulary_size = rows, .dim = 3, .initializer = counting()};
    table.combiner = static_cast<Combiner>(round % 3);
    EmbeddingOptions options;
    options.out_of_range = OutOfRange::kDrop;
    options.count_unique_ids = round % 2 == 0;
    Embedding engine =
        engine_with(accelerator(replicas, hosts, round % 4 < 2 ? Sharding::kDiv : Sharding::kMod),
                    Nested<FeatureConfig>(feature(make_table(table), length)), sgd(0.1), options);
    std::vector<Rows> data;
    std::set<std::int64_t> unique;
    Table want;
    for (std::int32_t r = 0; r < replicas; ++r) {
      std::vector<std::vector<std::int64_t>> all(samples);
      for (auto& sample : all) {
        for (unsigned n = random() % 5; n > 0; --n)
          sample.push_back(static_cast<std::int64_t>(random() % static_cast<unsigned>(rows + 2)) -
                           1);
        std::int64_t kept = 0, empty = length;
        for (std::size_t i = 0; i < sample.size(); ++i) {
          if (length > 0 && static_cast<std::int64_t>(i) >= length) {
            ++want.truncated_entries;
          } else if (sample[i] < 0 || sample[i] >= rows) {
            ++want.dropped_ids;
          } else {
            ++kept;
            --empty;
            unique.insert(sample[i]);
          }
        }
        want.entries += kept;
        want.empty_rows += length > 0 ? empty : kept == 0;
      }
      data.emplace_back(all);
    }
    std::vector<Batch> batches;
    for (const Rows& own : data)
      batches.push_back({Nested<FeatureIds>(round % 2 == 0 ? FeatureIds(own.ragged())
                                                           : FeatureIds(own.sparse()))});
    train(engine, batches);
    const auto distinct = static_cast<std::int64_t>(unique.size());
    EXPECT_EQ(counts(engine, 0), (C{want.entries, distinct, distinct, want.empty_rows,
                                    want.dropped_ids, want.truncated_entries}))
        << "round " << round;
  }
}

}  // namespace
}  // namespace embertable
