#include "apps/jobs/data/samples.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace embertable::jobs {
namespace {

/// Sample i is {i, i + 1000000}; gives the first cells in the order of an epoch, and checks the
/// second.
std::vector<std::int32_t> order(std::int32_t size, std::uint64_t seed, std::int64_t epoch) {
  Samples samples{.stride = 2};
  for (std::int32_t i = 0; i < size; ++i) {
    samples.cells.push_back(i);
    samples.cells.push_back(i + 1'000'000);
  }
  Samples shuffled;
  shuffle_epoch(samples, seed, epoch, shuffled);
  std::vector<std::int32_t> first;
  for (std::int64_t i = 0; i < shuffled.size(); ++i) {
    first.push_back(shuffled.id(i, 0));
    EXPECT_EQ(shuffled.id(i, 1), first.back() + 1'000'000);
  }
  return first;
}

TEST(ShuffleEpoch, HoldsEverySampleOnce) {
  for (const std::int32_t size : {0, 1, 2, 4095, 4096, 50'000}) {
    std::vector<std::int32_t> samples = order(size, 1, 1);
    ASSERT_EQ(samples.size(), static_cast<std::size_t>(size));
    std::sort(samples.begin(), samples.end());
    for (std::int32_t i = 0; i < size; ++i) ASSERT_EQ(samples[i], i);
  }
}

TEST(ShuffleEpoch, DependsOnSeedAndEpochAlone) {
  EXPECT_EQ(order(100, 1, 1), order(100, 1, 1));
  EXPECT_NE(order(100, 1, 1), order(100, 1, 2));
  EXPECT_NE(order(100, 1, 1), order(100, 2, 1));
}

TEST(ShuffleEpoch, GivesAFewSamplesEveryOrder) {
  // Each of the 24 orders of 4 samples in 24000 epochs: 1000 times, deviation 31.
  std::vector<int> times(256);
  for (int epoch = 0; epoch < 24'000; ++epoch) {
    const std::vector<std::int32_t> o = order(4, 9, epoch);
    ++times[o[0] + 4 * o[1] + 16 * o[2] + 64 * o[3]];
  }
  EXPECT_EQ(std::count(times.begin(), times.end(), 0), 256 - 24);
  for (const int n : times) {
    EXPECT_TRUE(n == 0 || std::abs(n - 1000) < 155) << n;
  }
}

TEST(ShuffleEpoch, SpreadsManySamplesEvenly) {
  // 65536 samples in 16 buckets: of each sixteenth of the file a sixteenth, 256, in each sixteenth
  // of the order, deviation 15.
  std::vector<int> times(256);
  const std::vector<std::int32_t> samples = order(65'536, 5, 2);
  for (std::size_t i = 0; i < samples.size(); ++i)
    ++times[i / 4096 * 16 + static_cast<std::size_t>(samples[i] / 4096)];
  for (const int n : times) EXPECT_NEAR(n, 256, 80);
  // Neighbours stay apart, and pairs rise as often as they fall: 32768, deviation 74.
  int rising = 0, neighbours = 0;
  for (std::size_t i = 1; i < samples.size(); ++i) {
    rising += samples[i] > samples[i - 1] ? 1 : 0;
    neighbours += samples[i] == samples[i - 1] + 1 ? 1 : 0;
  }
  EXPECT_NEAR(rising, 32'768, 400);
  EXPECT_LT(neighbours, 10);
}

}  // namespace
}  // namespace embertable::jobs
