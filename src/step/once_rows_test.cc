#include "step/once_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "step/backward.h"
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
  std::int32_t core = 0;
};

Source random_source(std::size_t samples, std::uint32_t rows, std::int32_t core,
                     std::mt19937& random) {
  Source source = {.core = core};
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

/// Runs a step whose rows named once are set apart by so many ranges, or not. Returns its rows.
Floats rows_after(const std::vector<Source>& sources, std::uint32_t rows, std::int32_t buckets,
                  Executor& executor, std::int32_t ranges, bool weighted,
                  std::int64_t* apart = nullptr) {
  TinyStep tiny(rows, buckets);
  tiny.table().once_ranges = RowRanges::of_rows(rows, ranges);
  for (const Source& source : sources) {
    tiny.add(source.samples, source.gradient, false, source.core);
    if (weighted) tiny.divide_by(source.denominators);
  }
  Workers regions(executor, 0);
  OnceRows(simd_level()).run(tiny.step, regions);
  plan_updates(tiny.step);
  ForwardRun().run(tiny.step, regions, simd_level());
  select_zeros(tiny.step, regions);
  point_at_gradients(tiny.step);
  std::vector<NamedShares> shares(1);
  BackwardRun backward(simd_level(), 1, shares);
  backward.prepare(tiny.step, regions);
  backward.run(regions);

  std::map<std::uint32_t, std::int64_t> named;
  for (const Source& source : sources)
    for (const auto& sample : source.samples)
      for (const std::uint32_t row : sample) ++named[row];
  const std::int64_t all = tiny.table().entries();
  const auto of_one = std::ranges::count_if(named, [](const auto& row) { return row.second == 1; });
  EXPECT_EQ(backward.unique_rows(0), std::ssize(named));
  EXPECT_DOUBLE_EQ(shares[0].once, static_cast<double>(of_one) / static_cast<double>(all));
  const UpdatePlan& plan = tiny.table().plan;
  EXPECT_EQ(plan.entries(), all);
  EXPECT_LE(plan.once, of_one);
  const auto* entry = static_cast<const UpdateEntry<std::uint32_t>*>(plan.entry);
  for (std::int64_t i = plan.bucket.back(); i < all; ++i) {
    EXPECT_EQ(named[entry[i].row], 1) << entry[i].row;
    if (i == plan.bucket.back()) continue;
    const auto place = [&](const UpdateEntry<std::uint32_t>& of) {
      return std::pair(tiny.table().once_ranges.of(of.row), of.out);
    };
    EXPECT_LE(place(entry[i - 1]), place(entry[i])) << "by range, then output row";
  }
  if (apart != nullptr) *apart = plan.once;
  return tiny.rows();
}

Floats rows_after(const std::vector<Source>& sources, std::uint32_t rows, std::int32_t buckets,
                  std::int32_t workers, std::int32_t ranges, bool weighted,
                  std::int64_t* apart = nullptr) {
  TestExecutor executor(test_seed(), workers);
  return rows_after(sources, rows, buckets, executor, ranges, weighted, apart);
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
      const Floats want = rows_after(sources, rows, 3, 1, 0, weighted);
      for (const std::int32_t workers : {1, 2, 3, 30}) {
        for (const std::int32_t ranges : {1, 6, 100}) {
          SCOPED_TRACE(testing::Message() << rows << " rows, " << workers << " workers");
          std::int64_t apart = 0;
          const std::int32_t buckets = ranges == 6 ? 4 : 1;
          const Floats got = rows_after(sources, rows, buckets, workers, ranges, weighted, &apart);
          EXPECT_TRUE(same_bits(got, want));
          EXPECT_GT(apart, rows > 50 ? 5000 : -1);
        }
      }
    }
  }
}

// More workers than filters are joined for: they write numbers into the same slots at once.
TEST(OnceRows, AreFoundByManyThreadsAtOnce) {
  std::mt19937 random(static_cast<unsigned>(test_seed()));
  constexpr std::uint32_t kManyRows = 200'000;
  const std::vector<Source> sources = {random_source(25'000, kManyRows, 0, random),
                                       random_source(9'000, kManyRows, 0, random)};
  const Floats want = rows_after(sources, kManyRows, 1, 1, 0, false);
  for (const std::int32_t threads : {12, 16}) {
    const std::shared_ptr<Executor> pool = make_thread_pool(threads);
    for (int repetition = 0; repetition < 3; ++repetition) {
      std::int64_t apart = 0;
      EXPECT_TRUE(same_bits(rows_after(sources, kManyRows, 5, *pool, 7, false, &apart), want));
      EXPECT_GT(apart, 20'000);
    }
  }
}

/// Bytes that the search takes in a table of one feature of `samples` output rows.
std::int64_t bytes_of_search(std::int64_t samples, std::int64_t ids, std::int32_t workers) {
  std::vector<std::vector<std::uint32_t>> rows(samples);
  std::uint32_t next = 0;
  for (auto& sample : rows)
    for (std::int64_t i = 0; i < ids; ++i) sample.push_back(next++);
  TinyStep tiny(samples * ids);
  tiny.table().once_ranges = RowRanges::of_rows(samples * ids, 32);
  tiny.add(rows, {});
  TestExecutor executor(test_seed(), workers);
  Workers regions(executor, 0);
  OnceRows(simd_level()).run(tiny.step, regions);
  return tiny.step.memory.bytes();
}

// A filter has at most two bytes an entry, with a slot for a number at most 32; a bucket number
// two.
TEST(OnceRows, TakeMemoryForEntriesNotForWorkersTimesEntries) {
  for (const std::int64_t samples : {64, 2048, 8192}) {
    const std::int64_t ids = 131'072 / samples;
    for (const std::int32_t workers : {1, 4, 64, 256})
      EXPECT_LT(bytes_of_search(samples, ids, workers), 40 * 131'072)
          << samples << " output rows, " << workers << " workers";
  }
}

TEST(OnceRows, ThatAnotherFeatureOrCoreNamesAreNot) {
  for (const std::int32_t workers : {1, 2, 20}) {
    for (const std::int32_t core : {0, 1}) {
      Source a = {.samples = {{1, 2}, {}, {3}}, .gradient = {1, 1, 2, 2, 3, 3}};
      Source b = {.samples = {{3}, {4}}, .gradient = {5, 5, 6, 6}, .core = core};
      std::int64_t apart = 0;
      const Floats rows = rows_after({a, b}, 100, 1, workers, 1, false, &apart);
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
  tiny.table().once_ranges = RowRanges::of_rows(3, 2);
  tiny.add(empty.samples, empty.gradient);
  TestExecutor executor(test_seed(), 2);
  Workers regions(executor, 0);
  OnceRows(simd_level()).run(tiny.step, regions);
  plan_updates(tiny.step);
  apart = tiny.table().plan.once;
  EXPECT_EQ(apart, 0);
  EXPECT_EQ(tiny.table().plan.entries(), 0);
}

TEST(RowRanges, HoldAllRowsAndAreNoMoreThanAsked) {
  EXPECT_FALSE(RowRanges::of_rows(100, 0));
  EXPECT_EQ(RowRanges::of_rows(0, 4).count, 0);
  for (const std::int64_t rows : {1, 2, 63, 64, 65, 4'000'000, 20'000'000}) {
    for (const std::int32_t most : {1, 2, 3, 32}) {
      const RowRanges ranges = RowRanges::of_rows(rows, most);
      EXPECT_TRUE(ranges.count >= 1 && ranges.count <= most) << rows << ", " << most;
      EXPECT_GE(ranges.count, std::min<std::int64_t>(most / 2, rows)) << rows << ", " << most;
      EXPECT_EQ(ranges.of(rows - 1) + 1, static_cast<std::uint32_t>(ranges.count));
    }
  }
}

template <class Index>
void every_level_agrees(Index first_row) {
  std::mt19937 random(1);
  std::vector<Index> row(1543);
  for (Index& r : row) r = first_row + static_cast<Index>(random() % 2000);
  const int bits = once_slot_bits(std::ssize(row));
  std::vector<std::uint64_t> first(OnceFilter::words(bits)), all(first), joined(first), rest(first);
  for (const Index r : row) see_slot({all.data(), bits}, once_slot(r, bits));
  for (const SimdLevel level : usable_levels()) {
    std::ranges::fill(joined, 0), std::ranges::fill(rest, 0);
    see_rows<Index>({row.data(), 700, {joined.data(), bits}}, level);
    see_rows<Index>({row.data() + 700, 843, {rest.data(), bits}}, level);
    join_filters({rest.data(), joined.data(), std::ssize(rest)}, level);
    EXPECT_EQ(joined, all);
    // Up to 64 lists are counted otherwise than more.
    for (const std::uint32_t buckets : {5u, 60u, 61u, 70u}) {
      for (const std::int32_t most : {1, 4}) {
        const RowRanges ranges =
            RowRanges::of_rows(static_cast<std::int64_t>(first_row) + 2000, most);
        const std::size_t lists = buckets + static_cast<std::size_t>(ranges.count);
        std::vector<std::uint16_t> bucket(row.size());
        std::vector<std::uint32_t> counts(lists), want(lists);
        set_once_apart<Index>({row.data(),
                               std::ssize(row),
                               {all.data(), bits},
                               buckets,
                               ranges,
                               bucket.data(),
                               counts.data()},
                              level);
        for (std::size_t i = 0; i < row.size(); ++i) {
          const bool again = seen_again({all.data(), bits}, once_slot(row[i], bits));
          const std::uint32_t place =
              again ? bucket_of(row[i], buckets) : buckets + ranges.of(row[i]);
          EXPECT_EQ(bucket[i], place);
          ++want[place];
        }
        EXPECT_EQ(counts, want);
        EXPECT_GT(counts.back(), 100u);
        EXPECT_TRUE(most == 1 || counts[lists - 2] > 100) << "of two ranges at least";
      }
    }
  }
}

TEST(OnceNumbers, SetWideRowNumbersApartByRange) {
  const std::uint64_t border = std::uint64_t{1} << 40;
  const std::vector<std::uint64_t> row = {border, border - 1, 7, border + 1, 7};
  std::vector<std::uint32_t> slot(std::size_t{1} << 9);
  const OnceNumbers numbers(slot, 9);
  const NumberedRows<std::uint64_t> all = {row.data(), std::ssize(row), 100};
  numbers.write(all);
  numbers.mark(all);
  std::vector<std::uint16_t> bucket(row.size());
  std::vector<std::uint32_t> counts(3 + 3);
  const RowRanges ranges = RowRanges::of_rows(static_cast<std::int64_t>(border) + 2, 4);
  ASSERT_EQ(ranges.count, 3);
  numbers.set_apart(all, 3, ranges, bucket.data(), counts.data());
  const auto of_seven = static_cast<std::uint16_t>(bucket_of(std::uint64_t{7}, 3));
  EXPECT_EQ(bucket, (std::vector<std::uint16_t>{5, 4, of_seven, 5, of_seven}));
  std::vector<std::uint32_t> want(3 + 3);
  want[of_seven] = 2, want[4] = 1, want[5] = 2;
  EXPECT_EQ(counts, want);
}

TEST(OnceFilter, LevelsAgreeForRowNumbersOfBothWidths) {
  every_level_agrees<std::uint32_t>(0);
  every_level_agrees<std::uint64_t>((std::uint64_t{1} << 40) - 1000);
}

}  // namespace
}  // namespace embertable
