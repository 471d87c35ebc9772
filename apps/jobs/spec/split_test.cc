#include "apps/jobs/spec/split.h"

#include <gtest/gtest.h>

namespace embertable::jobs {
namespace {

// The values of the published rule.
TEST(Split, HashesAsPublished) {
  EXPECT_EQ(splitmix64(0), 0xe220a8397b1dcdafu);
  EXPECT_EQ(splitmix64(1), 0x910a2dec89025cc1u);
  EXPECT_EQ(splitmix64(2), 0x975835de1c9756ceu);
  EXPECT_EQ(splitmix64(pair_key(314, 1)), 0x9ed5d60b3b2efc1au);
}

TEST(Split, DealsBucketsToParts) {
  EXPECT_EQ(split_bucket(0), 5);
  EXPECT_EQ(split_bucket(1), 5);
  EXPECT_EQ(split_bucket(2), 0);
  EXPECT_EQ(split_part(2), Part::kTest);
  EXPECT_EQ(split_bucket(pair_key(314, 1)), 4);
  EXPECT_EQ(split_part(pair_key(314, 1)), Part::kTraining);
}

TEST(Split, ASaltIsMixedIntoTheKey) {
  EXPECT_EQ(split_bucket(7, 0), static_cast<int>(splitmix64(7) % 10));
  EXPECT_EQ(split_bucket(7, 1), static_cast<int>(splitmix64(7 ^ 0x910a2dec89025cc1u) % 10));
}

TEST(Split, GivesEachPartItsTenths) {
  int rows[3] = {};
  for (std::uint64_t key = 0; key < 100'000; ++key) ++rows[static_cast<int>(split_part(key))];
  EXPECT_NEAR(rows[0], 10'000, 400);
  EXPECT_NEAR(rows[1], 10'000, 400);
  EXPECT_NEAR(rows[2], 80'000, 600);
}

}  // namespace
}  // namespace embertable::jobs
