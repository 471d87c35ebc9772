#include "tensor/double_power.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "testing/executor.h"

namespace embertable {
namespace {

constexpr double kInfiniteDouble = std::numeric_limits<double>::infinity();

/// Doubles between two of the same sign.
std::int64_t apart(double a, double b) {
  return std::llabs(std::bit_cast<std::int64_t>(a) - std::bit_cast<std::int64_t>(b));
}

TEST(Power, IsWithinTwoUnitsOfTheTruth) {
  std::mt19937_64 random(test_seed(3));
  const auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  for (int i = 0; i < 200'000; ++i) {
    const double x = std::exp2(uniform(-300, 300));
    const double y = uniform(-700, 700) / std::max(1.0, std::fabs(std::log(x)));
    const auto truth = static_cast<double>(std::pow(static_cast<long double>(x), y));
    ASSERT_LE(apart(power(x, y), truth), 2) << x << " ^ " << y;
  }
  for (int i = 0; i < 100'000; ++i) {  // near 1, where the logarithm cancels
    const double x = 1 + uniform(-1e-3, 1e-3), y = uniform(-1e5, 1e5);
    const auto truth = static_cast<double>(std::pow(static_cast<long double>(x), y));
    ASSERT_LE(apart(power(x, y), truth), 2) << x << " ^ " << y;
  }
}

TEST(Power, SmallIntegersAreExact) {
  EXPECT_EQ(power(2, 10), 1024);
  EXPECT_EQ(power(-3, 3), -27);
  EXPECT_EQ(power(10, 15), 1e15);
  EXPECT_EQ(power(4, 0.5), 2);
  EXPECT_EQ(power(2, -1074), 0x1p-1074);
  EXPECT_EQ(power(2, 1023), 0x1p1023);
}

TEST(Power, HasTheSpecialValuesOfC) {
  const double values[] = {
      0.0,          -0.0,  1,       -1,  2, -2, 0.5, -0.5, 3, -3, kInfiniteDouble, -kInfiniteDouble,
      std::nan(""), 1e308, -1e-308, 1e19};
  for (const double x : values)
    for (const double y : values) {
      const double expected = std::pow(x, y), result = power(x, y);
      if (x == -1 && std::isinf(y)) {
        EXPECT_EQ(result, 1);
      } else if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(result)) << x << " ^ " << y << " = " << result;
      } else {
        EXPECT_EQ(std::signbit(result), std::signbit(expected)) << x << " ^ " << y;
        EXPECT_TRUE(result == expected || apart(result, expected) <= 2)
            << x << " ^ " << y << " = " << result << ", not " << expected;
      }
    }
}

}  // namespace
}  // namespace embertable
