// Part of every binary whose tests try all SIMD levels that this CPU has: it says which are left
// out.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/level.h"

namespace embertable {
namespace {

class EveryLevel : public testing::TestWithParam<SimdLevel> {};

TEST_P(EveryLevel, IsTriedByTheTestsOfThisBinary) {
  const std::vector<SimdLevel> usable = usable_levels();
  if (std::find(usable.begin(), usable.end(), GetParam()) == usable.end())
    GTEST_SKIP() << "they leave " << to_string(GetParam()) << " out: they need a CPU that has it";
}

INSTANTIATE_TEST_SUITE_P(Simd, EveryLevel,
                         testing::Values(SimdLevel::kScalar, SimdLevel::kAvx2, SimdLevel::kAvx512),
                         [](const auto& level) { return std::string(to_string(level.param)); });

}  // namespace
}  // namespace embertable
