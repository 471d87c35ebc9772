#include "exchange/all_gather.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace embertable {
namespace {

using testing::Pair;

TEST(FirstDifference, IsALineOfEachText) {
  EXPECT_THAT(first_difference("a = 1\nb = 2\n", "a = 1\nb = 20\n"), Pair("b = 2", "b = 20"));
  EXPECT_THAT(first_difference("a = 1\n", "b = 1\nb = 2\n"), Pair("a = 1", "b = 1"));
}

TEST(FirstDifference, OfATextThatHasEndedIsNothing) {
  EXPECT_THAT(first_difference("a\nb\n", "a\n"), Pair("b", "nothing"));
  EXPECT_THAT(first_difference("", "a"), Pair("nothing", "a"));
  EXPECT_THAT(first_difference("", ""), Pair("nothing", "nothing"));
}

}  // namespace
}  // namespace embertable
