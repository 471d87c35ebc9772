#include "serving/row_updates.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <numeric>

#include "embertable/embedding.h"
#include "embertable/strategy.h"

namespace embertable::serving {
namespace {

/// One feature with one id a sample.
struct Case {
  std::int64_t rows, samples;
  std::int32_t dim, workers;

  std::vector<std::uint64_t> ids() const {
    std::vector<std::uint64_t> ids(samples);
    for (std::int64_t i = 0; i < samples; ++i) ids[i] = static_cast<std::uint64_t>(i * 7919 % rows);
    return ids;
  }
};

std::int64_t buckets_of_engine(const Case& of, std::shared_ptr<Executor> executor) {
  const TablePtr table = make_table({.vocabulary_size = of.rows, .dim = of.dim, .name = "words"});
  const Nested<FeatureConfig> features =
      Nested<FeatureConfig>::map({{"word", FeatureConfig{.table = table}}});
  Embedding engine(features, Optimizer("sgd", 0.1), make_strategy({.executor = executor}));
  const std::vector<std::uint64_t> rows = of.ids();
  const std::vector<std::int64_t> ids(rows.begin(), rows.end());
  std::vector<std::int64_t> splits(ids.size() + 1);
  std::iota(splits.begin(), splits.end(), 0);
  engine.enqueue(Batch{Nested<FeatureIds>::map({{"word", FeatureIds(RaggedIds{splits, ids})}})});
  engine.dequeue();
  engine.apply_gradients(Nested<Gradient>::map({{"word", Gradient{}}}));
  return engine.last_step().tables.front().buckets;
}

std::int64_t buckets_of_lookups(const Case& of, Executor& executor) {
  std::vector<float> floats(of.rows * of.dim);
  const RowBlock rows = {.row = floats.data(), .stride = of.dim, .dim = of.dim, .rows = of.rows};
  const std::vector<std::uint64_t> ids = of.ids();
  const Gather<std::uint64_t> entries = {.row = ids.data(), .last = of.samples};
  RowUpdates updates(executor, simd_level());
  updates.add("words", rows, std::vector<EntrySource>{{.entries = &entries}});
  updates.prepare();
  return updates.buckets(0);
}

TEST(RowUpdates, ChooseBucketsAsEnginesDo) {
  std::int64_t most = 0;
  for (const Case& of : {Case{100, 4000, 8, 1}, Case{1 << 17, 1 << 15, 32, 1},
                         Case{1 << 17, 1 << 15, 32, 4}, Case{1 << 12, 1 << 15, 4, 3}}) {
    const std::shared_ptr<Executor> executor = make_thread_pool(of.workers);
    const std::int64_t buckets = buckets_of_engine(of, executor);
    EXPECT_EQ(buckets_of_lookups(of, *executor), buckets)
        << of.rows << " rows of " << of.dim << ", " << of.samples << " samples, " << of.workers
        << " workers";
    most = std::max(most, buckets);
  }
  EXPECT_GT(most, 1);
}

TEST(RowUpdates, HandOnTheSumsOfRowsThatStay) {
  std::vector<float> floats = {1, 2, 3, 4, 5, 6};
  const RowBlock rows = {.row = floats.data(), .stride = 2, .dim = 2, .rows = 3};
  const std::vector<std::uint64_t> ids = {2, 0, 2};
  const std::vector<float> gradient = {1, 2, 3, 4, 5, 6};
  const Gather<std::uint64_t> entries = {.row = ids.data(), .last = 3};
  const std::shared_ptr<Executor> executor = make_inline_executor();
  RowUpdates updates(*executor, simd_level());
  updates.add("words", rows,
              std::vector<EntrySource>{{.entries = &entries, .gradient = gradient.data()}});
  updates.prepare();
  updates.run();
  const GradientSumsOfTable sums = in_order(updates.sums(0), 2);
  EXPECT_EQ(sums.ids, (std::vector<std::int64_t>{0, 2}));
  EXPECT_EQ(sums.sums, (std::vector<float>{3, 4, 6, 8}));
  EXPECT_EQ(floats, (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

// Tables that are mapped are read-only: a write would end the process.
TEST(RowUpdates, LeaveHalfRowsAloneWhereTheyHandOnSums) {
  constexpr std::int64_t kRows = 40, kDim = 19, kBytes = kRows * kDim * 2;
  void* const memory =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* const halves = static_cast<std::uint16_t*>(memory);
  std::iota(halves, halves + kRows * kDim, std::uint16_t{0x3f80});
  ASSERT_EQ(mprotect(memory, kBytes, PROT_READ), 0);
  const RowBlock rows = {
      .stride = kDim, .dim = kDim, .rows = kRows, .type = RowType::kBfloat16, .half = halves};
  std::vector<std::uint64_t> ids;  // row i by i % 3 entries, whose gradients are 1, 2, 3, ...
  for (std::uint64_t i = 0; i < kRows; ++i) ids.insert(ids.end(), i % 3, i);
  std::vector<float> gradient, want;
  std::vector<std::int64_t> named;
  float next = 1;
  for (std::int64_t i = 0; i < kRows; ++i) {
    if (i % 3 == 0) continue;
    named.push_back(i);
    const float sum = i % 3 == 1 ? next : 2 * next + 1;
    want.insert(want.end(), kDim, sum);
    for (std::int64_t k = 0; k < i % 3; ++k) gradient.insert(gradient.end(), kDim, next++);
  }
  const Gather<std::uint64_t> entries = {.row = ids.data(), .last = std::ssize(ids)};
  const std::shared_ptr<Executor> executor = make_thread_pool(2);
  RowUpdates updates(*executor, simd_level());
  updates.add("words", rows,
              std::vector<EntrySource>{{.entries = &entries, .gradient = gradient.data()}});
  updates.prepare();
  updates.run();
  const GradientSumsOfTable sums = in_order(updates.sums(0), kDim);
  EXPECT_EQ(sums.ids, named);
  EXPECT_EQ(sums.sums, want);
  munmap(memory, kBytes);
}

}  // namespace
}  // namespace embertable::serving
