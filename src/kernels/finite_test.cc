#include "kernels/finite.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "testing/guarded_floats.h"

namespace embertable {
namespace {

constexpr float kLargest = std::numeric_limits<float>::max();

std::int64_t first(const GuardedFloats& values, SimdLevel level) {
  return first_not_finite(values.begin(), values.size(), level);
}

TEST(FirstNotFinite, FindsNothingAmongFiniteNumbers) {
  for (const SimdLevel level : usable_levels()) {
    for (const std::int64_t count : {0, 1, 15, 16, 17, 63, 1023, 1024, 1025, 5000}) {
      EXPECT_EQ(first(GuardedFloats(count, kLargest), level), count);
      EXPECT_EQ(first(GuardedFloats(count, -1e-45f), level), count);
    }
  }
}

TEST(FirstNotFinite, FindsTheFirstOfSeveralWhereverItStands) {
  for (const SimdLevel level : usable_levels()) {
    for (const float bad :
         {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
          std::numeric_limits<float>::quiet_NaN()}) {
      for (std::int64_t at = 0; at < 3000; at += 7) {
        GuardedFloats values(3001, -0.0f);
        values[at] = bad;
        values[3000] = bad;
        ASSERT_EQ(first(values, level), at) << to_string(level);
      }
    }
  }
}

}  // namespace
}  // namespace embertable
