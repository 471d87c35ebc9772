#include "kernels/narrow.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace embertable {
namespace {

template <class Id, class Index>
struct Narrowed {
  bool good;
  std::vector<Index> row;
};

template <class Id, class Index>
Narrowed<Id, Index> run(SimdLevel level, const std::vector<Id>& ids, std::int64_t limit) {
  std::vector<Index> row(ids.size());
  const Narrow<Id, Index> args = {ids.data(), static_cast<std::int64_t>(ids.size()), limit,
                                  row.data()};
  return {narrow(args, level), row};
}

template <class T>
class NarrowIds : public ::testing::Test {};

template <class IdType, class IndexType>
struct Types {
  using Id = IdType;
  using Index = IndexType;
};
using AllTypes =
    ::testing::Types<Types<std::int32_t, std::uint32_t>, Types<std::int32_t, std::uint64_t>,
                     Types<std::int64_t, std::uint32_t>, Types<std::int64_t, std::uint64_t>>;
TYPED_TEST_SUITE(NarrowIds, AllTypes);

TYPED_TEST(NarrowIds, CopiesIdsBelowTheLimit) {
  using Id = typename TypeParam::Id;
  for (const SimdLevel level : usable_levels())
    for (std::size_t n = 0; n < 70; ++n) {
      std::vector<Id> ids(n);
      std::vector<typename TypeParam::Index> want(n);
      for (std::size_t i = 0; i < n; ++i)
        ids[i] = static_cast<Id>(i * 3), want[i] = static_cast<typename TypeParam::Index>(i * 3);
      const auto got = run<Id, typename TypeParam::Index>(level, ids, 210);
      EXPECT_TRUE(got.good);
      EXPECT_EQ(got.row, want);
    }
}

TYPED_TEST(NarrowIds, SeesOneBadIdAnywhere) {
  using Id = typename TypeParam::Id;
  using Limits = std::numeric_limits<Id>;
  for (const SimdLevel level : usable_levels())
    for (std::size_t n : {1, 7, 8, 16, 33, 67})
      for (std::size_t at = 0; at < n; ++at)
        for (const Id bad :
             {Id{-1}, Id{100}, Limits::min(), Limits::max(), static_cast<Id>(Limits::min() + 5)}) {
          std::vector<Id> ids(n, 99);
          ids[at] = bad;
          EXPECT_FALSE((run<Id, typename TypeParam::Index>(level, ids, 100).good))
              << bad << " at " << at;
        }
}

/// About the numbers that are read as one run while the next run is fetched: 256.
constexpr std::size_t kLong[] = {255, 256, 257, 511, 512, 513, 767, 768, 770};

TYPED_TEST(NarrowIds, CopiesRunsAndWhatIsBehindThem) {
  using Id = typename TypeParam::Id;
  using Index = typename TypeParam::Index;
  for (const SimdLevel level : usable_levels())
    for (const std::size_t n : kLong) {
      std::vector<Id> ids(n);
      for (std::size_t i = 0; i < n; ++i) ids[i] = static_cast<Id>(i * 3);
      EXPECT_EQ((run<Id, Index>(level, ids, 3000).row), std::vector<Index>(ids.begin(), ids.end()));
      for (std::size_t at = 0; at < n; ++at) {
        std::vector<Id> other = ids;
        other[at] = at % 2 == 0 ? Id{-1} : Id{3000};
        EXPECT_FALSE((run<Id, Index>(level, other, 3000).good)) << at << " of " << n;
      }
    }
}

TEST(Narrow, KnowsLimitsThatDoNotFitTheId) {
  for (const SimdLevel level : usable_levels()) {
    const std::vector<std::int32_t> good = {0, std::numeric_limits<std::int32_t>::max()},
                                    bad = {0, -1};
    EXPECT_TRUE((run<std::int32_t, std::uint64_t>(level, good, std::int64_t{1} << 40).good));
    EXPECT_FALSE((run<std::int32_t, std::uint64_t>(level, bad, std::int64_t{1} << 40).good));
    const std::vector<std::int64_t> high = {(std::int64_t{1} << 40) - 1},
                                    low = {std::int64_t{1} << 40};
    EXPECT_TRUE((run<std::int64_t, std::uint64_t>(level, high, std::int64_t{1} << 40).good));
    EXPECT_FALSE((run<std::int64_t, std::uint64_t>(level, low, std::int64_t{1} << 40).good));
    EXPECT_FALSE((run<std::int64_t, std::uint32_t>(level, {std::int64_t{1} << 32}, 1000).good));
    EXPECT_TRUE(
        (run<std::int64_t, std::uint64_t>(level, {std::numeric_limits<std::int64_t>::max() - 1},
                                          std::numeric_limits<std::int64_t>::max())
             .good));
  }
}

template <class Split>
SplitsSeen seen(SimdLevel level, const std::vector<Split>& splits) {
  std::vector<std::int64_t> split(splits.size());
  const SplitsSeen result = copy_splits<Split>(
      {splits.data(), static_cast<std::int64_t>(splits.size()) - 1, split.data()}, level);
  if (result.rising) {
    EXPECT_EQ(split, std::vector<std::int64_t>(splits.begin(), splits.end()));
  }
  const SplitsSeen looked = copy_splits<Split>(
      {splits.data(), static_cast<std::int64_t>(splits.size()) - 1, nullptr}, level);
  EXPECT_EQ(looked.rising, result.rising);
  EXPECT_EQ(looked.one_each, result.one_each);
  return result;
}

template <class T>
class CopiedSplits : public ::testing::Test {};
using SplitTypes = ::testing::Types<std::int32_t, std::int64_t>;
TYPED_TEST_SUITE(CopiedSplits, SplitTypes);

TYPED_TEST(CopiedSplits, AreSeenToRiseAndToBeOneEach) {
  for (const SimdLevel level : usable_levels())
    for (TypeParam n = 0; n < 70; ++n) {
      std::vector<TypeParam> splits;
      for (TypeParam i = 0; i <= n; ++i) splits.push_back(i + 5);
      EXPECT_TRUE(seen(level, splits).rising && seen(level, splits).one_each);
      for (TypeParam i = 1; i <= n; ++i) {
        std::vector<TypeParam> other = splits;
        other[i] -= 1;
        EXPECT_TRUE(seen(level, other).rising && !seen(level, other).one_each);
        other[i] -= 1;
        EXPECT_FALSE(seen(level, other).rising) << "at " << i << " of " << n;
      }
    }
}

TYPED_TEST(CopiedSplits, AreSeenInRunsAndBehindThem) {
  for (const SimdLevel level : usable_levels())
    for (const std::size_t n : kLong) {
      std::vector<TypeParam> splits;
      for (std::size_t i = 0; i <= n; ++i) splits.push_back(static_cast<TypeParam>(i));
      EXPECT_TRUE(seen(level, splits).one_each);
      for (std::size_t i = 2; i <= n; ++i) {
        std::vector<TypeParam> other = splits;
        other[i] -= 1;
        EXPECT_TRUE(seen(level, other).rising && !seen(level, other).one_each);
        other[i] -= 1;
        EXPECT_FALSE(seen(level, other).rising) << "at " << i << " of " << n;
      }
    }
}

TYPED_TEST(CopiedSplits, AreNotFooledByOverflow) {
  constexpr TypeParam max = std::numeric_limits<TypeParam>::max(),
                      min = std::numeric_limits<TypeParam>::min();
  for (const SimdLevel level : usable_levels()) {
    EXPECT_FALSE(seen<TypeParam>(level, {0, max, min, 0, 4}).rising);
    EXPECT_FALSE(seen<TypeParam>(level, {-1, 0, 1}).rising);
    EXPECT_FALSE(seen<TypeParam>(level, {max, min}).rising);
    EXPECT_TRUE(seen<TypeParam>(level, {0, max, max}).rising);
  }
}

TEST(CountBuckets, CountsWhatBucketOfSays) {
  for (const SimdLevel level : usable_levels())
    for (const std::uint32_t buckets : {1u, 2u, 7u, 64u, 65u, 1000u})
      for (const std::size_t n : {0u, 1u, 511u, 512u, 513u, 5000u}) {
        std::vector<std::uint32_t> narrow(n), want(buckets), counts(buckets, 77);
        std::vector<std::uint64_t> wide(n);
        for (std::size_t i = 0; i < n; ++i)
          wide[i] = narrow[i] = static_cast<std::uint32_t>(i * i * 2654435761u >> 3);
        for (const std::uint32_t r : narrow) ++want[bucket_of(r, buckets)];
        count_buckets<std::uint32_t>(
            {narrow.data(), static_cast<std::int64_t>(n), buckets, counts.data()}, level);
        EXPECT_EQ(counts, want);
        count_buckets<std::uint64_t>(
            {wide.data(), static_cast<std::int64_t>(n), buckets, counts.data()}, level);
        EXPECT_EQ(counts, want);
      }
}

}  // namespace
}  // namespace embertable
