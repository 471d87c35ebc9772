#include "kernels/level.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "embertable/errors.h"

namespace embertable {
namespace {

/// EMBERTABLE_SIMD while a test runs.
class Wanted {
 public:
  explicit Wanted(const char* value) {
    const char* old = std::getenv("EMBERTABLE_SIMD");
    if (old != nullptr) old_ = old;
    had_ = old != nullptr;
    setenv("EMBERTABLE_SIMD", value, 1);
  }
  ~Wanted() { had_ ? setenv("EMBERTABLE_SIMD", old_.c_str(), 1) : unsetenv("EMBERTABLE_SIMD"); }

 private:
  std::string old_;
  bool had_ = false;
};

TEST(SimdLevel, UsableLevelsRiseFromScalar) {
  const auto levels = usable_levels();
  ASSERT_FALSE(levels.empty());
  EXPECT_EQ(levels.front(), SimdLevel::kScalar);
  EXPECT_TRUE(std::is_sorted(levels.begin(), levels.end()));
}

TEST(SimdLevel, IsWhatTheEnvironmentNames) {
  for (const SimdLevel level : usable_levels()) {
    const Wanted wanted(std::string(to_string(level)).c_str());
    EXPECT_EQ(simd_level(), level);
  }
}

TEST(SimdLevel, IsTheHighestUsableOneOtherwise) {
  const Wanted wanted("");
  EXPECT_EQ(simd_level(), usable_levels().back());
}

TEST(SimdLevel, RefusesAnUnknownName) {
  const Wanted wanted("sse9");
  try {
    simd_level();
    FAIL();
  } catch (const ValueError& error) {
    EXPECT_EQ(std::string(error.what())
                  .rfind("EMBERTABLE_SIMD: must be a level that this machine can run (scalar", 0),
              0u);
  }
}

}  // namespace
}  // namespace embertable
