// Lookups of many threads at once, while blocks are checked for the first time.
#include <gmock/gmock.h>

#include <atomic>
#include <fstream>
#include <optional>
#include <thread>

#include "testing/serving/lookups.h"

namespace embertable {
namespace {

using namespace engine_fixture;  // NOLINT: tables, data and batches of the cases

constexpr std::int64_t kRows = 30000;
constexpr std::int32_t kDim = 32;
constexpr int kThreads = 4;

Nested<FeatureConfig> config() {
  return Nested<FeatureConfig>(feature(make_table({.vocabulary_size = kRows,
                                                   .dim = kDim,
                                                   .initializer = Initializer::row_id(),
                                                   .optimizer = {},
                                                   .combiner = Combiner::kSum,
                                                   .name = "t"})));
}

template <class Body>
void on_threads(Body body) {
  std::atomic<int> waiting = kThreads;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (--waiting; waiting > 0;) std::this_thread::yield();
      body(t);
    });
  for (std::thread& thread : threads) thread.join();
}

/// Looks up rows all over the table in an order of its own; counts those with another first value
/// than their number, and those that are refused.
struct Walk {
  std::int64_t wrong = 0, refused = 0;

  Walk(ServingEmbedding& serving, int thread) {
    LookupOutput output;
    for (std::int64_t i = 0; i < 2000; ++i) {
      const std::int64_t row = (i * 7919 + thread * 104729) % kRows;
      const Ids ids = {row};
      try {
        serving.embedding_lookup(batch_of(DenseIds{ids, {}}), output);
        wrong += output(0).values[0] != static_cast<float>(row);
      } catch (const DataLoss&) {
        ++refused;
      }
    }
  }
};

TEST(ServingThreads, AnInitializerThatCallsTheServingIsRefused) {
  std::optional<ServingEmbedding> serving;
  std::string text;
  const TablePtr table =
      make_table({.vocabulary_size = 10,
                  .dim = 1,
                  .initializer = Initializer::function([&](const RowRange&, std::span<float> out) {
                    text = refusal<StateError>([&] { serving->build(); });
                    std::fill(out.begin(), out.end(), 3.0f);
                  }),
                  .optimizer = {},
                  .combiner = Combiner::kSum,
                  .name = "t"});
  serving.emplace(Nested<FeatureConfig>(feature(table)));
  serving->build();
  EXPECT_THAT(text, testing::HasSubstr("a function that the engine calls"));
}

TEST(ServingThreads, LookUpWhileBlocksAreChecked) {
  const TemporaryDirectory run;
  Embedding plain(config(), {}, nullptr);
  plain.build();
  plain.save(run.path());
  ServingEmbedding serving =
      ServingEmbedding::open(run.path(), config(), {.tables = OpenTables::kMap});
  std::atomic<std::int64_t> bad = 0;
  on_threads([&](int t) {
    const Walk walk(serving, t);
    bad += walk.wrong + walk.refused;
  });
  EXPECT_EQ(bad, 0);
}

TEST(ServingThreads, AllAreRefusedTheDamagedBlock) {
  const TemporaryDirectory run;
  Embedding plain(config(), {}, nullptr);
  plain.build();
  const auto directory = plain.save(run.path());
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (!entry.path().filename().string().starts_with("t00000")) continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp((1 << 20) + 5);
    file.put('\x7f');
  }
  ServingEmbedding serving =
      ServingEmbedding::open(run.path(), config(), {.tables = OpenTables::kMap});
  std::array<std::int64_t, kThreads> refused{};
  std::atomic<std::int64_t> wrong = 0;
  on_threads([&](int t) {
    const Walk walk(serving, t);
    refused[t] = walk.refused;
    wrong += walk.wrong;
  });
  EXPECT_EQ(wrong, 0);
  for (const std::int64_t count : refused) EXPECT_GT(count, 300);  // a block has 8,192 rows
}

TEST(ServingThreads, TheFirstLookupsBuildOnce) {
  std::atomic<int> filled = 0;
  TableConfig table;
  table.vocabulary_size = 100;
  table.dim = 4;
  table.initializer = Initializer::function([&](const RowRange&, std::span<float> out) {
    ++filled;
    std::ranges::fill(out, 1.0f);
  });
  ServingEmbedding serving(Nested<FeatureConfig>(feature(make_table(table))));
  std::atomic<int> wrong = 0;
  on_threads([&](int t) {
    const Ids ids = {t};
    if (values_of(serving(batch_of(DenseIds{ids, {}}))) != F(4, 1.0f)) ++wrong;
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(filled, 1);
}

}  // namespace
}  // namespace embertable
