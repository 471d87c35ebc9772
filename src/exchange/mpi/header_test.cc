#include "exchange/mpi/header.h"

#include <gtest/gtest.h>

namespace embertable::mpi {
namespace {

Header header(std::int32_t channel, std::int64_t round, std::int64_t bytes) {
  Header made;
  made.channel = channel;
  made.round = round;
  made.bytes = bytes;
  return made;
}

TEST(MpiHeader, OfARoundHasItsNumberAndASize) {
  EXPECT_TRUE(header(2, 7, 0).is_valid(7));
  EXPECT_TRUE(header(0, 7, kMostMessage).is_valid(7));
  EXPECT_FALSE(header(0, 7, 16).is_valid(8));
  EXPECT_FALSE(header(3, 7, 16).is_valid(7));
  EXPECT_FALSE(header(0, 7, -1).is_valid(7));
  EXPECT_FALSE(header(0, 7, kMostMessage + 1).is_valid(7));
}

TEST(MpiHeader, ThatGivesUpHasAReason) {
  EXPECT_TRUE(header(kFailed, 0, 0).is_valid(7));
  EXPECT_TRUE(header(kFollows, 0, kMostReason).is_valid(7));
  EXPECT_FALSE(header(kFailed, 0, -1).is_valid(7));
  EXPECT_FALSE(header(kFailed, 0, kMostReason + 1).is_valid(7));
  EXPECT_FALSE(header(-3, 0, 0).is_valid(7));
}

TEST(MpiHeader, ShowsAsMuchOfAStageAsItHolds) {
  const std::string_view what = "rows";
  Header made;
  made.set({Channel::kAhead, {what, 12}});
  EXPECT_EQ(made.started(), (Started{Channel::kAhead, {what, 12}}));
  made.what_bytes = -1;  // no process of ours sends this
  EXPECT_EQ(made.started().stage.what.size(), 64);
}

}  // namespace
}  // namespace embertable::mpi
