#include "checkpoint/progression.h"

#include <gtest/gtest.h>

#include <vector>

namespace embertable::checkpoint {
namespace {

using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;

Pairs found(const Progression& a, const Progression& b) {
  const Overlap both = overlap(a, b);
  EXPECT_EQ(both.a_index.count, both.b_index.count);
  Pairs pairs;
  for (std::int64_t i = 0; i < both.a_index.count; ++i)
    pairs.emplace_back(both.a_index[i], both.b_index[i]);
  return pairs;
}

Pairs searched(const Progression& a, const Progression& b) {
  Pairs pairs;
  for (std::int64_t i = 0; i < a.count; ++i)
    for (std::int64_t j = 0; j < b.count; ++j)
      if (a[i] == b[j]) pairs.emplace_back(i, j);
  return pairs;
}

TEST(Overlap, OfABlockWithEveryThirdRow) {
  // 4 5 6 7 8 9 and 1 4 7 10: rows 4 and 7.
  EXPECT_EQ(found({4, 1, 6}, {1, 3, 4}), (Pairs{{0, 1}, {3, 2}}));
}

TEST(Overlap, IsWhatASearchFinds) {
  for (std::int64_t a_step = 1; a_step <= 6; ++a_step)
    for (std::int64_t b_step = 1; b_step <= 6; ++b_step)
      for (std::int64_t a_first = 0; a_first < 9; ++a_first)
        for (std::int64_t b_first = 0; b_first < 9; ++b_first)
          for (const std::int64_t a_count : {0, 1, 2, 7})
            for (const std::int64_t b_count : {0, 1, 3, 8}) {
              const Progression a = {a_first, a_step, a_count}, b = {b_first, b_step, b_count};
              ASSERT_EQ(found(a, b), searched(a, b))
                  << a_first << "+" << a_step << "*" << a_count << " " << b_first << "+" << b_step
                  << "*" << b_count;
            }
}

TEST(Overlap, HoldsForLargeNumbers) {
  // Rows that leave 5 modulo 2^31 - 1 and 1 modulo 2^30, below 2^61.
  constexpr std::int64_t kPrime = (std::int64_t{1} << 31) - 1, kPower = std::int64_t{1} << 30;
  const Progression a = {5, kPrime, (std::int64_t{1} << 30) - 1};
  const Progression b = {1, kPower, std::int64_t{1} << 31};
  const Overlap both = overlap(a, b);
  ASSERT_GE(both.a_index.count, 1);
  EXPECT_EQ(a[both.a_index[0]], b[both.b_index[0]]);
  EXPECT_EQ(a[both.a_index[0]] % kPrime, 5);
  EXPECT_EQ(a[both.a_index[0]] % kPower, 1);
}

}  // namespace
}  // namespace embertable::checkpoint
