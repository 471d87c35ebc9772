#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <thread>
#include <vector>

#include "kernels/level.h"
#include "testing/sanitized.h"

#define EMBERTABLE_LEVEL_BODY "kernels/power_test.inl"
#include "kernels/for_each_level.inl"

namespace embertable {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kTiny = std::numeric_limits<float>::denorm_min();
constexpr float kHuge = std::numeric_limits<float>::max();

using Floats = std::vector<float>;

/// A function at every level, and the same of libm.
struct Function {
  void (*at[3])(const float* x, const float* y, float* out, std::int64_t count);
  double (*near)(double x, double y);
  long double (*reference)(long double x, long double y);
};
const Function kPow = {{scalar::run_pow, avx2::run_pow, avx512::run_pow},
                       [](double x, double y) { return std::pow(x, y); },
                       [](long double x, long double y) { return powl(x, y); }};
const Function kExp = {{scalar::run_exp, avx2::run_exp, avx512::run_exp},
                       [](double x, double) { return std::exp(x); },
                       [](long double x, long double) { return expl(x); }};
const Function kLog = {{scalar::run_log, avx2::run_log, avx512::run_log},
                       [](double x, double) { return std::log(x); },
                       [](long double x, long double) { return logl(x); }};

Floats values(const Function& function, SimdLevel level, const Floats& x, const Floats& y) {
  Floats out(x.size());
  function.at[static_cast<int>(level)](x.data(), y.data(), out.data(),
                                       static_cast<std::int64_t>(x.size()));
  return out;
}

/// Equal bits; all NaNs are one.
bool same(float x, float y) {
  return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y) ||
         (std::isnan(x) && std::isnan(y));
}

/// How far `got` is from the exact value, in units of the last place of binary32; of what is beyond
/// its range, how far it is from the border.
double ulps(float got, long double exact) {
  if (std::isnan(exact)) return std::isnan(got) ? 0 : kInfinity;
  if (std::isinf(exact) || std::isnan(got)) return got == static_cast<float>(exact) ? 0 : kInfinity;
  const long double border = 0x1p128L;
  const long double value = std::clamp<long double>(got, -border, border);
  const int exponent = exact == 0 ? -200 : std::ilogb(static_cast<double>(exact));
  const long double ulp = std::ldexp(1.0L, std::max(std::min(exponent, 127), -126) - 23);
  return static_cast<double>(std::fabs(value - std::clamp(exact, -border, border)) / ulp);
}

/// Numbers of every kind, made by `number` from 64 random bits.
struct Points {
  const Function& function;
  void (*point)(std::mt19937_64& random, float& x, float& y);
};

/// The worst error of `count` points in ulps; at a level that gives other bits it is infinite.
double worst_error(const Points& points, std::int64_t count, std::uint64_t seed) {
  constexpr std::size_t kAtOnce = 16 * 256;
  const std::vector<SimdLevel> levels = usable_levels();
  std::mt19937_64 random(seed);
  double worst = 0;
  Floats x(kAtOnce), y(kAtOnce);
  for (std::int64_t done = 0; done < count; done += std::int64_t{kAtOnce}) {
    for (std::size_t i = 0; i < kAtOnce; ++i) points.point(random, x[i], y[i]);
    const Floats got = values(points.function, SimdLevel::kScalar, x, y);
    for (const SimdLevel level : levels) {
      if (!std::ranges::equal(values(points.function, level, x, y), got, same)) return kInfinity;
    }
    for (std::size_t i = 0; i < kAtOnce; ++i) {
      // Binary64 says it to a millionth; only what may be the worst is worth long double.
      if (ulps(got[i], points.function.near(x[i], y[i])) > worst - 1e-6)
        worst = std::max(worst, ulps(got[i], points.function.reference(x[i], y[i])));
    }
  }
  return worst;
}

/// The worst error at 10^7 points, on two threads.
double worst_error(const Points& points) {
  constexpr std::int64_t kCount = kSanitized ? 50'000 : 5'000'000;
  double other = 0;
  std::thread thread([&] { other = worst_error(points, kCount, 1); });
  const double worst = worst_error(points, kCount, 2);
  thread.join();
  return std::max(worst, other);
}

float any_float(std::mt19937_64& random) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(random()));
}
float uniform(std::mt19937_64& random, float low, float high) {
  return low + (high - low) * static_cast<float>(random() >> 40) * 0x1p-24f;
}

/// A base of any bits and an exponent that keeps the result in the range, or near a case that has
/// roots, or any.
void pow_point(std::mt19937_64& random, float& x, float& y) {
  x = std::fabs(any_float(random));
  const std::uint64_t kind = random() % 8;
  if (kind < 4) {
    y = uniform(random, -160, 160) / std::log2(std::clamp(x, kTiny, kHuge));
  } else if (kind == 4) {
    y = std::nextafter(static_cast<float>(random() % 9) * 0.25f - 1,
                       random() % 2 == 0 ? 9.f : -9.f);
  } else if (kind == 5) {
    x = 1 + uniform(random, -1, 1) * 0x1p-10f;
    y = uniform(random, -1, 1) * 0x1p17f;
  } else if (kind == 6) {
    y = uniform(random, -4, 4);
  } else {
    y = any_float(random);
  }
}
void exp_point(std::mt19937_64& random, float& x, float&) {
  x = random() % 4 == 0 ? any_float(random) : uniform(random, -110, 100);
}
void log_point(std::mt19937_64& random, float& x, float&) {
  x = random() % 4 == 0 ? 1 + uniform(random, -1, 1) * 0x1p-8f : std::fabs(any_float(random));
}

TEST(Power, PowIsWithinOneUlpAndTheSameAtEveryLevel) {
  const double worst = worst_error({kPow, pow_point});
  std::printf("pow: %.7f ulp at worst\n", worst);
  EXPECT_LE(worst, 1);
}

TEST(Power, ExpIsWithinOneUlpAndTheSameAtEveryLevel) {
  const double worst = worst_error({kExp, exp_point});
  std::printf("exp: %.7f ulp at worst\n", worst);
  EXPECT_LE(worst, 1);
}

TEST(Power, LogIsWithinOneUlpAndTheSameAtEveryLevel) {
  const double worst = worst_error({kLog, log_point});
  std::printf("log: %.7f ulp at worst\n", worst);
  EXPECT_LE(worst, 1);
}

/// The function of one pair, at every level; NaN if two differ.
float value(const Function& function, float x, float y = 0) {
  const Floats xs(16, x), ys(16, y);
  const float first = values(function, SimdLevel::kScalar, xs, ys)[0];
  for (const SimdLevel level : usable_levels()) {
    for (const float lane : values(function, level, xs, ys))
      if (!same(lane, first)) return kNan;
  }
  return first;
}

TEST(Power, PowIsExactWhereTheResultIs) {
  EXPECT_EQ(value(kPow, 2, 10), 1024);
  EXPECT_EQ(value(kPow, 2, -149), kTiny);
  EXPECT_EQ(value(kPow, 4, 1.5f), 8);
  EXPECT_EQ(value(kPow, 0.5f, 127), 0x1p-127f);
  EXPECT_EQ(value(kPow, 10, 3), 1000);
  EXPECT_EQ(value(kPow, 3, 13), 1594323);
}

TEST(Power, PowHasTheEdgesOfTheStandard) {
  for (const float x : {0.0f, -0.0f, kTiny, 0.5f, 1.0f, kHuge, kInfinity, kNan, -2.0f}) {
    EXPECT_EQ(value(kPow, x, 0), 1) << x;
    EXPECT_EQ(value(kPow, x, -0.0f), 1) << x;
  }
  for (const float y : {-kInfinity, -3.5f, kTiny, 1.0f, kInfinity, kNan})
    EXPECT_EQ(value(kPow, 1, y), 1) << y;
  for (const float zero : {0.0f, -0.0f}) {
    for (const float y : {kTiny, 0.3f, 2.0f, kHuge, kInfinity})
      EXPECT_TRUE(same(value(kPow, zero, y), 0)) << y;
    for (const float y : {-kTiny, -0.3f, -2.0f, -kHuge, -kInfinity})
      EXPECT_EQ(value(kPow, zero, y), kInfinity) << y;
  }
  for (const float y : {kTiny, 0.3f, kHuge, kInfinity}) {
    EXPECT_EQ(value(kPow, kInfinity, y), kInfinity) << y;
    EXPECT_TRUE(same(value(kPow, kInfinity, -y), 0)) << y;
  }
  EXPECT_EQ(value(kPow, 1.0000001f, kInfinity), kInfinity);
  EXPECT_EQ(value(kPow, 1.0000001f, kHuge), kInfinity);
  EXPECT_TRUE(same(value(kPow, 0.9999999f, kInfinity), 0));
  EXPECT_EQ(value(kPow, 0.9999999f, -kInfinity), kInfinity);
  EXPECT_EQ(value(kPow, kTiny, -1), kInfinity);
  EXPECT_EQ(value(kPow, kTiny, 0.1f), std::pow(kTiny, 0.1f));
  EXPECT_TRUE(std::isnan(value(kPow, kNan, 0.3f)));
  EXPECT_TRUE(std::isnan(value(kPow, 0.3f, kNan)));
  EXPECT_TRUE(std::isnan(value(kPow, -2, 0.3f)));
}

TEST(Power, ExpAndLogHaveTheEdgesOfTheStandard) {
  EXPECT_EQ(value(kExp, 0), 1);
  EXPECT_EQ(value(kExp, -0.0f), 1);
  EXPECT_EQ(value(kExp, kTiny), 1);
  EXPECT_EQ(value(kExp, kInfinity), kInfinity);
  EXPECT_EQ(value(kExp, kHuge), kInfinity);
  EXPECT_TRUE(same(value(kExp, -kInfinity), 0));
  EXPECT_TRUE(same(value(kExp, -kHuge), 0));
  EXPECT_TRUE(std::isnan(value(kExp, kNan)));
  EXPECT_TRUE(same(value(kLog, 1), 0));
  EXPECT_EQ(value(kLog, 0), -kInfinity);
  EXPECT_EQ(value(kLog, -0.0f), -kInfinity);
  EXPECT_EQ(value(kLog, kInfinity), kInfinity);
  EXPECT_EQ(value(kLog, kTiny), std::log(kTiny));
  EXPECT_TRUE(std::isnan(value(kLog, -kTiny)));
  EXPECT_TRUE(std::isnan(value(kLog, -kInfinity)));
  EXPECT_TRUE(std::isnan(value(kLog, kNan)));
}

float power(SimdLevel level, float x, float p) {
  const Floats base(16, x);
  Floats out(16);
  EMBERTABLE_AT_LEVEL(level, run_power(base.data(), p, out.data()));
  return out[15];
}

TEST(Power, TakesRootsOfBinary32WhereTheyAreTheResult) {
  for (const SimdLevel level : usable_levels()) {
    for (const float x : {0.0f, kTiny, 0.3f, 7.0f, kHuge, kInfinity, kNan}) {
      const float root = std::sqrt(x);
      EXPECT_TRUE(same(power(level, x, 1), x)) << x;
      EXPECT_TRUE(same(power(level, x, 0.75f), root * std::sqrt(root))) << x;
      EXPECT_TRUE(same(power(level, x, 0.5f), root)) << x;
      EXPECT_TRUE(same(power(level, x, 0.25f), std::sqrt(root))) << x;
      EXPECT_TRUE(same(power(level, x, 0), 1)) << x;
      EXPECT_TRUE(same(power(level, x, 0.3f), value(kPow, x, 0.3f))) << x;
      EXPECT_TRUE(same(power(level, x, -0.5f), value(kPow, x, -0.5f))) << x;
    }
  }
}

}  // namespace
}  // namespace embertable
