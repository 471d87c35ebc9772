#include "apps/jobs/math/negatives.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace embertable::jobs {
namespace {

using Items = std::vector<std::int32_t>;

TEST(NegativeSampler, DrawsEveryItemAsOftenThatIsNotAvoided) {
  const std::vector<std::int64_t> splits = {0, 0, 4};
  const Items avoided = {1, 2, 5, 19};
  const NegativeSampler sampler(20, {splits, avoided});
  std::vector<int> seen(20);
  constexpr int kSamples = 20'000, kEach = 4;
  for (std::uint64_t s = 0; s < kSamples; ++s) {
    Items out(kEach);
    sampler.draw(RandomRow(7, s), 1, 10, out);
    for (const std::int32_t item : out) ++seen[item];
  }
  // 15 items are left. 5 standard deviations of a binomial count.
  const double mean = kSamples * kEach / 15.0;
  for (const int item : {1, 2, 5, 10, 19}) EXPECT_EQ(seen[item], 0);
  for (const int item : {0, 3, 4, 6, 9, 11, 18})
    EXPECT_NEAR(seen[item], mean, 5 * std::sqrt(mean)) << item;
}

TEST(NegativeSampler, FindsEveryPlaceOfAList) {
  for (std::int32_t size = 1; size <= 9; ++size) {
    Items avoided;
    for (std::int32_t i = 0; i < size; ++i) avoided.push_back(2 * i);
    const std::vector<std::int64_t> splits = {0, size};
    const NegativeSampler sampler(2 * size, {splits, avoided});
    for (std::uint64_t s = 0; s < 500; ++s) {
      Items out(1);
      sampler.draw(RandomRow(1, s), 0, -1, out);
      EXPECT_EQ(out[0] % 2, 1) << size;
    }
  }
}

TEST(NegativeSampler, KeepsListsApartThatAreOfManySizes) {
  // List n has n items of every third one, so that sieves have one word, many and none to find.
  std::vector<std::int64_t> splits = {0};
  Items avoided;
  for (std::int32_t list = 0; list < 300; list = list < 20 ? list + 1 : list * 2) {
    for (std::int32_t i = 0; i < list; ++i) avoided.push_back(3 * i);
    splits.push_back(std::ssize(avoided));
  }
  const NegativeSampler sampler(1000, {splits, avoided});
  for (std::size_t list = 0; list + 1 < splits.size(); ++list) {
    const auto last = 3 * static_cast<std::int32_t>(splits[list + 1] - splits[list]);
    bool seen_below = last == 0, seen_above = false;
    for (std::uint64_t s = 0; s < 3000; ++s) {
      Items out(2);
      sampler.draw(RandomRow(3, s), static_cast<std::int64_t>(list), -1, out);
      for (const std::int32_t item : out) {
        EXPECT_FALSE(item < last && item % 3 == 0) << list;
        seen_below |= item < last;
        seen_above |= item >= last && item % 3 == 0;
      }
    }
    EXPECT_TRUE(seen_below && seen_above) << list;
  }
}

TEST(NegativeSampler, HangsOnTheSampleAlone) {
  const NegativeSampler sampler(1000, {});
  Items few(3), many(9), other(9);
  sampler.draw(RandomRow(5, 8), 0, 4, few);
  sampler.draw(RandomRow(5, 8), 0, 4, many);
  sampler.draw(RandomRow(5, 9), 0, 4, other);
  EXPECT_EQ(few, Items(many.begin(), many.begin() + 3));
  EXPECT_NE(many, other);
}

TEST(NegativeSampler, EndsWhereNothingIsLeft) {
  const std::vector<std::int64_t> splits = {0, 2};
  const Items avoided = {0, 1};
  Items out(2);
  NegativeSampler(2, {splits, avoided}).draw(RandomRow(1, 1), 0, 0, out);
  for (const std::int32_t item : out) EXPECT_TRUE(item == 0 || item == 1);
}

}  // namespace
}  // namespace embertable::jobs
