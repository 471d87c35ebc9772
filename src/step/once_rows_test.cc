#include "step/once_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <vector>

#include "step/backward_run.h"
#include "step/bucket_policy.h"
#include "step/forward.h"
#include "testing/executor.h"
#include "testing/step/tiny_step.h"

namespace embertable {
namespace {

using Floats = std::vector<float>;

/// A feature of random samples: most rows are drawn from all of the table, some from few rows.
struct Source {
  std::vector<std::vector<std::uint32_t>> samples;
  Floats gradient;
  Floats denominators;  ///< or empty
  std::int32_t replica = 0;
};

Source random_source(std::size_t samples, std::uint32_t rows, std::int32_t replica,
                     std::mt19937& random) {
  Source source = {.replica = replica};
  for (std::size_t i = 0; i < samples; ++i) {
    auto& sample = source.samples.emplace_back();
    for (auto n = random() % 5; n > 0; --n)
      sample.push_back(
          static_cast<std::uint32_t>(random() % 10 == 0 ? random() % 7 : random() % rows));
    for (std::int32_t c = 0; c < TinyStep::kDim; ++c)
      source.gradient.push_back(static_cast<float>(random() % 2001) / 977.0f - 1);
    source.denominators.push_back(static_cast<float>(random() % 3 + 1));
  }
  source.gradient[random() % source.gradient.size()] = std::numeric_limits<float>::quiet_NaN();
  return source;
}

/// Runs a step whose rows named once are set apart or not. Returns its rows.
Floats rows_after(const std::vector<Source>& sources, std::uint32_t rows, std::int32_t buckets,
                  std::int32_t workers, bool once, bool weighted, std::int64_t* apart = nullptr) {
  TinyStep tiny(rows, buckets);
  tiny.table().once = once;
  for (const Source& source : sources) {
    tiny.add(source.samples, source.gradient, false, source.replica);
    if (weighted) tiny.divide_by(source.denominators);
  }
  TestExecutor executor(test_seed(), workers);
  Workers regions(executor, 0);
  OnceRows(simd_level()).run(tiny.step, regions);
  plan_updates(tiny.step);
  ForwardRun().run(tiny.step, regions, simd_level());
  select_zeros(tiny.step, regions);
  point_at_gradients(tiny.step);
  BackwardRun backward(simd_level(), 1);
  backward.prepare(tiny.step, regions);
  backward.run(regions);

  std::map<std::uint32_t, std::int64_t> named;
  for (const Source& source : sources)
    for (const auto& sample : source.samples)
      for (const std::uint32_t row : sample) ++named[row];
  const std::int64_t all = tiny.table().entries();
  const auto of_one = std::ranges::count_if(named, [](const auto& row) { return row.second == 1; });
  EXPECT_EQ(backward.unique_rows(0), std::ssize(named));
  EXPECT_DOUBLE_EQ(backward.once_share(0), static_cast<double>(of_one) / static_cast<double>(all));
  const UpdatePlan& plan = tiny.table().plan;
  EXPECT_EQ(plan.entries(), all);
  EXPECT_LE(plan.once, of_one);
  const auto* entry = static_cast<const UpdateEntry<std::uint32_t>*>(plan.entry);
  for (std::int64_t i = plan.bucket.back(); i < all; ++i) {
    EXPECT_EQ(named[entry[i].row], 1) << entry[i].row;
    EXPECT_TRUE(i == plan.bucket.back() || entry[i - 1].out <= entry[i].out);
  }
  if (apart != nullptr) *apart = plan.once;
  return tiny.rows();
}

bool same_bits(const Floats& a, const Floats& b) {
  return a.size() == b.size() && std::ranges::equal(a, b, [](float x, float y) {
           return (std::isnan(x) && std::isnan(y)) || std::memcmp(&x, &y, sizeof x) == 0;
         });
}

TEST(OnceRows, GiveTheBitsOfBucketsForAnyNumberOfWorkers) {
  std::mt19937 random(static_cast<unsigned>(test_seed()));
  for (const bool weighted : {false, true}) {
    for (const std::uint32_t rows : {50u, 30'000u}) {
      const std::vector<Source> sources = {random_source(3000, rows, 0, random),
                                           random_source(5000, rows, 0, random),
                                           random_source(17, rows, 1, random)};
      const Floats want = rows_after(sources, rows, 3, 1, false, weighted);
      for (const std::int32_t workers : {1, 2, 3, 30}) {
        for (const std::int32_t buckets : {1, 4}) {
          SCOPED_TRACE(testing::Message() << rows << " rows, " << workers << " workers");
          std::int64_t apart = 0;
          const Floats got = rows_after(sources, rows, buckets, workers, true, weighted, &apart);
          EXPECT_TRUE(same_bits(got, want));
          EXPECT_GT(apart, rows > 50 ? 5000 : -1);
        }
      }
    }
  }
}

TEST(OnceRows, ThatAnotherFeatureOrReplicaNamesAreNot) {
  for (const std::int32_t workers : {1, 2, 20}) {
    for (const std::int32_t replica : {0, 1}) {
      Source a = {.samples = {{1, 2}, {}, {3}}, .gradient = {1, 1, 2, 2, 3, 3}};
      Source b = {.samples = {{3}, {4}}, .gradient = {5, 5, 6, 6}, .replica = replica};
      std::int64_t apart = 0;
      const Floats rows = rows_after({a, b}, 100, 1, workers, true, false, &apart);
      EXPECT_EQ(apart, 3);  // rows 1, 2 and 4
      EXPECT_EQ(Floats(rows.begin() + 2, rows.begin() + 10),
                (Floats{9, 10, 19, 20, 22, 23, 34, 35}));
    }
  }
}

TEST(OnceRows, OfNoEntriesAreNone) {
  std::int64_t apart = 1;
  const Source empty = {.samples = {{}, {}}, .gradient = {1, 1, 1, 1}};
  TinyStep tiny(3);
  tiny.table().once = true;
  tiny.add(empty.samples, empty.gradient);
  TestExecutor executor(test_seed(), 2);
  Workers regions(executor, 0);
  OnceRows(simd_level()).run(tiny.step, regions);
  plan_updates(tiny.step);
  apart = tiny.table().plan.once;
  EXPECT_EQ(apart, 0);
  EXPECT_EQ(tiny.table().plan.entries(), 0);
}

TEST(OnceFilter, LevelsAndWidthsAgree) {
  std::mt19937 random(1);
  std::vector<std::uint32_t> row(1543);
  for (std::uint32_t& r : row) r = static_cast<std::uint32_t>(random() % 2000);
  const int bits = once_slot_bits(std::ssize(row));
  std::vector<std::uint64_t> first(OnceFilter::words(bits)), all(first), joined(first), rest(first);
  for (const std::uint32_t r : row) see_slot({all.data(), bits}, once_slot(r, bits));
  for (const SimdLevel level : usable_levels()) {
    std::ranges::fill(joined, 0), std::ranges::fill(rest, 0);
    see_rows<std::uint32_t>({row.data(), 700, {joined.data(), bits}}, level);
    see_rows<std::uint32_t>({row.data() + 700, 843, {rest.data(), bits}}, level);
    join_filters({rest.data(), joined.data(), std::ssize(rest)}, level);
    EXPECT_EQ(joined, all);
    std::vector<std::uint16_t> bucket(row.size());
    std::vector<std::uint32_t> counts(6), want(6);
    set_once_apart<std::uint32_t>(
        {row.data(), std::ssize(row), {all.data(), bits}, 5, bucket.data(), counts.data()}, level);
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool again = seen_again({all.data(), bits}, once_slot(row[i], bits));
      const std::uint32_t place = again ? bucket_of(row[i], 5) : 5;
      EXPECT_EQ(bucket[i], place);
      ++want[place];
    }
    EXPECT_EQ(counts, want);
    EXPECT_GT(counts[5], 100u);
  }
}

}  // namespace
}  // namespace embertable
