#include "step/hot_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "testing/built_plans.h"
#include "testing/executor.h"
#include "testing/reference_sum.h"

namespace embertable {
namespace {

/// The row becomes its gradient, its slot counts updates.
void keep_gradient(const RowTile& tile, const StepScalars&) noexcept {
  for (std::int32_t i = 0; i < tile.rows; ++i) {
    std::copy_n(tile.gradient[i], tile.dim, tile.row[i]);
    *tile.slot[0][i] += 1;
  }
}

constexpr std::int64_t kRows = 400;

struct HotTable {
  explicit HotTable(std::int32_t dim)
      : floats(static_cast<std::size_t>(kRows * dim)), counts(kRows), marks(kRows / 16 + 1) {
    rows = {.row = floats.data(), .stride = dim, .slots = 1, .dim = dim, .rows = kRows};
    rows.slot[0] = counts.data(), rows.slot_stride[0] = 1;
  }
  TableUpdate update(const BuiltPlans& plans) {
    return {.rows = rows,
            .update_rows = keep_gradient,
            .plan = plans.update,
            .gradients = plans.source(),
            .touched = marks.data()};
  }
  std::vector<float> floats, counts;
  std::vector<std::uint16_t> marks;
  RowBlock rows;
};

/// Each entry is one of the hot rows with a probability of `percent`.
TestFeature hot_bags(std::size_t samples, unsigned most, const std::vector<std::uint64_t>& hot,
                     unsigned percent, unsigned seed) {
  std::mt19937 random(test_seed(seed));
  TestFeature feature;
  for (std::size_t i = 0; i < samples; ++i) {
    auto& sample = feature.samples.emplace_back();
    for (unsigned n = random() % (most + 1); n > 0; --n)
      sample.push_back(random() % 100 < percent ? hot[random() % hot.size()] : random() % kRows);
  }
  return feature;
}

/// Updates all buckets, those that have hot rows with their sums cut for so many workers and made
/// from the last part to the first. Returns how many entries of hot rows there were.
std::int64_t update_all(const BuiltPlans& plans, HotTable& table, std::int32_t workers,
                        SimdLevel level) {
  const TableUpdate update = table.update(plans);
  std::int64_t hot_entries = 0;
  for (std::int64_t b = 0; b < plans.update.buckets(); ++b) {
    const auto at = static_cast<std::size_t>(b);
    const std::int64_t first = plans.update.bucket[at],
                       entries = plans.update.bucket[at + 1] - first;
    HotBucket hot;
    const bool found = workers > 0 && hot.find(update, first, entries);
    if (found) {
      hot.cut(workers);
      for (std::int64_t part = hot.parts(); part-- > 0;) hot.sum_part(part, level);
      hot_entries += hot.entries();
    }
    GroupScratch scratch;
    scratch.reserve(entries - (found ? hot.entries() : 0), plans.update.wide, table.rows.dim);
    update_entries(update, first, entries, scratch, level, found ? &hot : nullptr);
  }
  return hot_entries;
}

/// Every number of workers gives the bits of buckets that are updated as they are. Returns the
/// entries of hot rows.
std::int64_t same_bits(const std::vector<TestFeature>& features, std::int32_t dim,
                       std::uint32_t buckets, bool direct = false) {
  std::int64_t hot_entries = 0;
  for (const SimdLevel level : usable_levels())
    for (const bool wide : {false, true}) {
      BuiltPlans plans(features, dim, buckets, wide);
      if (direct)
        plans.update.direct = &plans.lookups[0];
      else
        plans.scatter_all();
      HotTable want(dim);
      update_all(plans, want, 0, level);
      for (const std::int32_t workers : {1, 2, 3, 7, 64}) {
        HotTable table(dim);
        hot_entries = update_all(plans, table, workers, level);
        EXPECT_EQ(table.counts, want.counts);
        EXPECT_EQ(table.marks, want.marks);
        EXPECT_EQ(std::memcmp(table.floats.data(), want.floats.data(),
                              want.floats.size() * sizeof(float)),
                  0)
            << to_string(level) << (wide ? " wide" : "") << ", dim " << dim << ", " << workers
            << " workers";
      }
    }
  return hot_entries;
}

std::int64_t named(const std::vector<TestFeature>& features,
                   const std::vector<std::uint64_t>& rows) {
  std::int64_t count = 0;
  for (const TestFeature& feature : features)
    for (const auto& sample : feature.samples)
      for (const std::uint64_t row : sample)
        count += std::find(rows.begin(), rows.end(), row) != rows.end() ? 1 : 0;
  return count;
}

TEST(HotBucket, SumsOneRowByPiecesFeaturesAndCores) {
  std::vector<TestFeature> features = {hot_bags(9000, 2, {5}, 30, 1), hot_bags(100, 9, {5}, 30, 2),
                                       hot_bags(4097, 3, {5}, 60, 3), hot_bags(50, 3, {5}, 0, 4)};
  features[2].core = features[3].core = 1;
  for (const std::int32_t dim : {1, 16, 33}) {
    EXPECT_EQ(same_bits(features, dim, 1), named(features, {5}));
    same_bits(features, dim, 3);
  }
  features[2].denominator.assign(features[2].samples.size(), 2);
  features[2].denominator[1] = 0;
  features[1].null_gradient = true;
  EXPECT_EQ(same_bits(features, 20, 1), named(features, {5}));
}

TEST(HotBucket, SumsOnePieceByColumns) {
  const std::vector<TestFeature> features = {hot_bags(1500, 4, {3}, 50, 5)};
  for (const std::int32_t dim : {1, 15, 16, 64, 100, 128, 300})
    EXPECT_EQ(same_bits(features, dim, 1), named(features, {3}));
}

TEST(HotBucket, SumsSeveralRows) {
  const std::vector<TestFeature> two = {hot_bags(6000, 2, {3, 4}, 80, 6)};
  EXPECT_EQ(same_bits(two, 20, 1), named(two, {3, 4}));
  const std::vector<TestFeature> four = {hot_bags(6000, 2, {3, 4, 399, 0}, 100, 7)};
  EXPECT_EQ(same_bits(four, 20, 1), named(four, {3, 4, 399, 0}));
}

TEST(HotBucket, LeavesNothingWhereEveryEntryIsOneRow) {
  const std::vector<TestFeature> features = {hot_bags(5000, 3, {7}, 100, 8)};
  EXPECT_EQ(same_bits(features, 32, 1), named(features, {7}));
}

TEST(HotBucket, TakesADirectPlan) {
  TestFeature feature = {.one_hot = true};
  std::mt19937 random(test_seed(9));
  for (int i = 0; i < 10000; ++i)
    feature.samples.push_back({random() % 10 < 4 ? 11 : random() % kRows});
  EXPECT_EQ(same_bits({feature}, 20, 1, true), named({feature}, {11}));
}

TEST(HotBucket, FindsNoneWhereRowsAreAlike) {
  EXPECT_EQ(same_bits({hot_bags(4000, 3, {5}, 0, 10)}, 4, 1), 0);
  EXPECT_EQ(same_bits({hot_bags(20, 3, {5}, 100, 11)}, 4, 1), 0) << "too few for a sample";
}

}  // namespace
}  // namespace embertable
