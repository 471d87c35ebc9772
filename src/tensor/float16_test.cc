#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "embertable/variables/tensor.h"
#include "testing/executor.h"

namespace embertable {
namespace {

constexpr float kInfiniteFloat = std::numeric_limits<float>::infinity();

/// x to the nearest multiple of 2^least or of the last of `digits` binary digits, of two to the
/// even one; infinite from `limit` on.
float nearest(float x, int digits, int least, float limit) {
  if (!std::isfinite(x) || x == 0) return x;
  const int last = std::max(std::ilogb(x) - (digits - 1), least);
  const auto rounded =
      static_cast<float>(std::ldexp(std::nearbyint(std::ldexp(double{x}, -last)), last));
  return std::fabs(rounded) >= limit ? std::copysign(kInfiniteFloat, x) : rounded;
}

TEST(Float16, EveryNumberComesBackFromFloat) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    Float16 half;
    half.bits = static_cast<std::uint16_t>(bits);
    const float x = static_cast<float>(half);
    if (std::isnan(x))
      EXPECT_TRUE(std::isnan(static_cast<float>(Float16(x)))) << bits;
    else
      ASSERT_EQ(Float16(x), half) << bits;
  }
}

TEST(Float16, HasTheValuesOfIeeeBinary16) {
  const auto value = [](std::uint16_t bits) {
    Float16 half;
    half.bits = bits;
    return static_cast<float>(half);
  };
  EXPECT_EQ(value(0x3c00), 1.0f);
  EXPECT_EQ(value(0xc000), -2.0f);
  EXPECT_EQ(value(0x7bff), 65504.0f);
  EXPECT_EQ(value(0x0001), 0x1p-24f);
  EXPECT_EQ(value(0x03ff), 1023 * 0x1p-24f);
  EXPECT_EQ(value(0x0400), 0x1p-14f);
  EXPECT_EQ(value(0xfc00), -kInfiniteFloat);
  EXPECT_TRUE(std::signbit(value(0x8000)));
}

TEST(Float16, RoundsToNearestEven) {
  EXPECT_EQ(static_cast<float>(Float16(1 + 0x1p-11f)), 1.0f);
  EXPECT_EQ(static_cast<float>(Float16(1 + 3 * 0x1p-11f)), 1 + 0x1p-9f);
  EXPECT_EQ(static_cast<float>(Float16(65519.0f)), 65504.0f);
  EXPECT_EQ(static_cast<float>(Float16(65520.0f)), kInfiniteFloat);
  EXPECT_EQ(static_cast<float>(Float16(0x1p-25f)), 0.0f);
  EXPECT_EQ(static_cast<float>(Float16(-0x1.8p-25f)), -0x1p-24f);
}

TEST(Halves, RandomNumbersAreRoundedAsByArithmetic) {
  std::mt19937 random(test_seed(5));
  for (int i = 0; i < 200'000; ++i) {
    const auto exponent = static_cast<int>(random() % 44) - 28;
    const float x = std::ldexp(1 + static_cast<float>(random() % (1 << 23)) * 0x1p-23f, exponent) *
                    (random() % 2 == 0 ? 1.0f : -1.0f);
    ASSERT_EQ(static_cast<float>(Float16(x)), nearest(x, 11, -24, 65520)) << x;
    ASSERT_EQ(static_cast<float>(BFloat16(x)), nearest(x, 8, -133, kInfiniteFloat)) << x;
  }
}

TEST(BFloat16, IsTheUpperHalfOfAFloat) {
  EXPECT_EQ(BFloat16(1.0f).bits, 0x3f80);
  EXPECT_EQ(BFloat16(1 + 0x1p-8f).bits, 0x3f80);
  EXPECT_EQ(BFloat16(1 + 3 * 0x1p-8f).bits, 0x3f82);
  EXPECT_EQ(static_cast<float>(BFloat16(std::numeric_limits<float>::max())), kInfiniteFloat);
  EXPECT_EQ(static_cast<float>(BFloat16(-kInfiniteFloat)), -kInfiniteFloat);
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(std::nanf("1")))));
}

}  // namespace
}  // namespace embertable
