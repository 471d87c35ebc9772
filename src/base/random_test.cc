#include "base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <vector>

namespace embertable {
namespace {

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

TEST(MixBits, IsTheFinalizerOfSplitMix64) {
  EXPECT_EQ(mix_bits(1234567 + kGoldenRatio),
            6457827717110365317u);  // first number of seed 1234567
  EXPECT_EQ(mix_bits(0), 0u);
}

// From the formulas in random.h, worked by Python's integers.
TEST(RandomBits, HaveFixedValues) {
  EXPECT_EQ(random_bits(0, 0, 0), 0xa70291f13e0403c1u);
  EXPECT_EQ(random_bits(0, 0, 1), 0xea8e4c7009a46055u);
  EXPECT_EQ(random_bits(0, 1, 0), 0xe8879f9be93ae830u);
  EXPECT_EQ(random_bits(1, 0, 0), 0x9dbc77c13011a0b8u);
  EXPECT_EQ(random_bits(7, 40000000, 63), 0x76184e7c471565deu);
  EXPECT_EQ(random_bits(7, 40000000, 63, 2), 0xac5b2b2e282a8471u);
  EXPECT_EQ(random_bits(kMost, kMost, 0xffffffffu, 0xffffffffu), 0xe34ddffaf69ae84bu);
}

TEST(StreamOf, HasFixedValues) {
  EXPECT_EQ(stream_of(0, ""), 0x69dd497cadf91c08u);
  EXPECT_EQ(stream_of(1, "video"), 0x91015484e63858dbu);
  EXPECT_EQ(stream_of(1, "video/accumulators"), 0x318a9f4ee7606163u);
}

TEST(RandomBits, NeighboursShareNothing) {
  std::set<std::uint64_t> seen;
  std::size_t asked = 0;
  for (std::uint64_t stream = 0; stream < 10; ++stream) {
    for (std::uint64_t row = 0; row < 100; ++row) {
      for (std::uint64_t column = 0; column < 64; ++column, ++asked) {
        seen.insert(random_bits(stream, row, column));
      }
    }
  }
  EXPECT_EQ(seen.size(), asked);
}

TEST(RandomBits, EveryBitIsSetHalfTheTime) {
  constexpr int kDraws = 1 << 16;
  std::vector<int> set(64);
  for (int i = 0; i < kDraws; ++i) {
    const std::uint64_t bits =
        random_bits(3, static_cast<std::uint64_t>(i / 64), static_cast<std::uint64_t>(i % 64));
    for (std::size_t b = 0; b < 64; ++b) set[b] += static_cast<int>(bits >> b & 1);
  }
  for (const int count : set) EXPECT_NEAR(count, kDraws / 2.0, 6 * 128);  // 6 standard deviations
}

TEST(UniformFloat, IsAMultipleOfItsStepBelowOne) {
  EXPECT_EQ(uniform_float(0), 0.0f);
  EXPECT_EQ(uniform_float(kMost), 1.0f - 0x1p-24f);
  EXPECT_EQ(uniform_float(std::uint64_t{1} << 40), 0x1p-24f);
  EXPECT_EQ(uniform_float((std::uint64_t{1} << 40) - 1), 0.0f);
  EXPECT_EQ(uniform_float(std::uint64_t{1} << 63), 0.5f);
}

TEST(UniformDouble, IsAMultipleOfItsStepBelowOne) {
  EXPECT_EQ(uniform_double(0), 0.0);
  EXPECT_EQ(uniform_double(kMost), 1.0 - 0x1p-53);
  EXPECT_EQ(uniform_double(std::uint64_t{1} << 11), 0x1p-53);
  EXPECT_EQ(uniform_double(std::uint64_t{1} << 63), 0.5);
}

TEST(UniformBelow, SpreadsBitsOverTheRange) {
  EXPECT_EQ(uniform_below(0, 10), 0u);
  EXPECT_EQ(uniform_below(kMost, 10), 9u);
  EXPECT_EQ(uniform_below(std::uint64_t{1} << 63, 10), 5u);
  EXPECT_EQ(uniform_below(kMost, 1), 0u);
  EXPECT_EQ(uniform_below(kMost, kMost), kMost - 1);
}

TEST(RandomRow, MeanAndVarianceAreThoseOfUniformNumbers) {
  double sum = 0;
  double squares = 0;
  constexpr int kDraws = 100000;
  for (int i = 0; i < kDraws; ++i) {
    const double x = uniform_double(RandomRow(9, static_cast<std::uint64_t>(i)).bits(0));
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 0.005);
  EXPECT_NEAR(squares / kDraws, 1.0 / 3, 0.005);
}

std::vector<std::int64_t> listed(const Permutation& permutation) {
  std::vector<std::int64_t> list;
  for (std::int64_t i = 0; i < permutation.size(); ++i) list.push_back(permutation[i]);
  return list;
}

TEST(Permutation, NamesEveryNumberOnce) {
  for (const std::int64_t n : {0, 1, 2, 3, 4, 5, 7, 8, 9, 100, 1023, 1024, 1025, 65537}) {
    std::vector<std::int64_t> list = listed(Permutation(n, 3));
    std::ranges::sort(list);
    for (std::int64_t i = 0; i < n; ++i) ASSERT_EQ(list[i], i) << n;
  }
}

TEST(Permutation, TheSeedChoosesTheOrder) {
  EXPECT_EQ(listed(Permutation(1000, 3)), listed(Permutation(1000, 3)));
  EXPECT_NE(listed(Permutation(1000, 3)), listed(Permutation(1000, 4)));
}

TEST(Permutation, OfFewComesInEveryOrderAboutEquallyOften) {
  std::map<std::vector<std::int64_t>, int> times;
  for (std::uint64_t seed = 0; seed < 24000; ++seed) ++times[listed(Permutation(4, seed))];
  EXPECT_EQ(times.size(), 24u);
  for (const auto& [order, count] : times) EXPECT_NEAR(count, 1000, 200);
}

TEST(Permutation, LeavesAboutOneNumberWhereItWas) {
  int fixed = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const Permutation permutation(100, seed);
    for (std::int64_t i = 0; i < 100; ++i) fixed += permutation[i] == i ? 1 : 0;
  }
  EXPECT_NEAR(fixed, 1000, 200);
}

TEST(Permutation, StaysInRangeForHugeOnes) {
  constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t n : {std::int64_t{1} << 40, kHuge}) {
    const Permutation permutation(n, 1);
    std::set<std::int64_t> seen;
    for (std::int64_t i = n - 1000; i < n; ++i) {
      EXPECT_TRUE(0 <= permutation[i] && permutation[i] < n);
      seen.insert(permutation[i]);
    }
    EXPECT_EQ(seen.size(), 1000u);
  }
}

}  // namespace
}  // namespace embertable
