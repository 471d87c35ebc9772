#include "base/float_environment.h"

#include <gtest/gtest.h>
#include <xmmintrin.h>

#include <cfenv>
#include <limits>

namespace embertable {
namespace {

/// Divided when it is called, not by the compiler.
float divided(float a, float b) {
  volatile float dividend = a;
  volatile float divisor = b;
  return dividend / divisor;
}

TEST(FloatEnvironment, RoundsToNearestAndRestores) {
  const float nearest = divided(1, 3);
  std::fesetround(FE_UPWARD);
  const float upward = divided(1, 3);
  float inside = 0;
  {
    const FloatEnvironment ours;
    inside = divided(1, 3);
  }
  const float after = divided(1, 3);
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(inside, nearest);
  EXPECT_EQ(after, upward);
}

TEST(FloatEnvironment, NestsAndLeavesAGoodOneAlone) {
  const FloatEnvironment outer;
  { const FloatEnvironment inner; }
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
}

constexpr unsigned int kFlushBoth = 0x8040;
constexpr unsigned int kMasks = 0x1f80;

TEST(FloatEnvironment, KeepsDenormalsAndRestoresFlushToZero) {
  const unsigned int found = _mm_getcsr();
  const float denormal = std::numeric_limits<float>::min();
  _mm_setcsr(found | kFlushBoth);
  const float flushed = divided(denormal, 4);
  float kept = 0;
  {
    const FloatEnvironment ours;
    kept = divided(denormal, 4);
  }
  const unsigned int restored = _mm_getcsr();
  _mm_setcsr(found);
  EXPECT_EQ(flushed, 0);
  EXPECT_EQ(kept, 0x1p-128f);
  EXPECT_EQ(restored & kFlushBoth, kFlushBoth);
}

TEST(FloatEnvironment, MasksExceptionsAndLeavesNoFlags) {
  const unsigned int found = _mm_getcsr();
  _mm_setcsr((found & ~0x3fu) & ~kMasks);
  {
    const FloatEnvironment ours;
    EXPECT_EQ(divided(1, 0), std::numeric_limits<float>::infinity());
  }
  const unsigned int restored = _mm_getcsr();
  _mm_setcsr(found);
  EXPECT_EQ(restored, (found & ~0x3fu) & ~kMasks);
}

}  // namespace
}  // namespace embertable
