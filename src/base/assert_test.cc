#include "base/assert.h"

#include <gtest/gtest.h>

namespace embertable {
namespace {

TEST(AssertDeathTest, ABrokenInvariantAbortsNamingPlaceAndCondition) {
  EXPECT_DEATH(EMBERTABLE_ASSERT(1 + 1 == 3),
               "assert_test.cc:[0-9]+: broken invariant: 1 \\+ 1 == 3");
}

TEST(Assert, AnInvariantThatHoldsIsEvaluatedOnce) {
  int evaluated = 0;
  EMBERTABLE_ASSERT(++evaluated > 0);
  EXPECT_EQ(evaluated, 1);
}

}  // namespace
}  // namespace embertable
