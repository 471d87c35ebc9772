#include "base/math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <vector>

#include "base/random.h"
#include "testing/executor.h"

namespace embertable {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr int kPoints = 200000;

using Ours = double (*)(double);
using Reference = long double (*)(long double);

/// |got - want| in units of the last place of want.
double error_in_ulp(double got, long double want) {
  const double rounded = static_cast<double>(want);
  const double ulp = std::nextafter(std::fabs(rounded), kInfinity) - std::fabs(rounded);
  return static_cast<double>(std::fabs(static_cast<long double>(got) - want) / ulp);
}

/// kPoints numbers from low to high.
std::vector<double> uniform_points(double low, double high) {
  std::vector<double> points = {low, high};
  for (std::uint64_t i = 0; i < kPoints; ++i) {
    points.push_back(low + (high - low) * uniform_double(random_bits(test_seed(1), i, 0)));
  }
  return points;
}

/// kPoints numbers whose logarithms are spread from those of low to high. 0 < low < high.
std::vector<double> log_points(double low, double high) {
  std::vector<double> points = uniform_points(std::log(low), std::log(high));
  for (double& x : points) x = std::clamp(std::exp(x), low, high);
  return points;
}

double worst_error(Ours ours, Reference reference, const std::vector<double>& points) {
  double worst = 0;
  for (const double x : points) worst = std::max(worst, error_in_ulp(ours(x), reference(x)));
  return worst;
}

int float_ulps(float a, float b) {
  return std::abs(std::bit_cast<std::int32_t>(a) - std::bit_cast<std::int32_t>(b));
}

/// The most by which the result as a float differs from the true one as a float.
int worst_float_error(Ours ours, Reference reference, const std::vector<double>& points) {
  int worst = 0;
  for (const double point : points) {
    const double x = static_cast<float>(point);
    worst =
        std::max(worst, float_ulps(static_cast<float>(ours(x)), static_cast<float>(reference(x))));
  }
  return worst;
}

Reference reference_of(long double (*function)(long double)) { return function; }
const Reference kExp = reference_of(std::exp);
const Reference kLog = reference_of(std::log);
const Reference kLog1p = reference_of(std::log1p);

TEST(Exp, IsWithinTwoUnitsInTheLastPlace) {
  EXPECT_LT(worst_error(math::exp, kExp, uniform_points(-708, 709)), 2);
  EXPECT_LT(worst_error(math::exp, kExp, uniform_points(-2, 2)), 2);
  EXPECT_LT(worst_error(math::exp, kExp, log_points(1e-300, 1)), 2);
}

TEST(Exp, OfFloatsIsTheFloatNextToIt) {
  EXPECT_LE(worst_float_error(math::exp, kExp, uniform_points(-103, 88)), 1);
}

TEST(Exp, KnowsItsEnds) {
  EXPECT_EQ(math::exp(0.0), 1);
  EXPECT_EQ(math::exp(-0.0), 1);
  EXPECT_EQ(math::exp(kInfinity), kInfinity);
  EXPECT_EQ(math::exp(-kInfinity), 0);
  EXPECT_EQ(math::exp(709.79), kInfinity);
  EXPECT_TRUE(std::isfinite(math::exp(709.78)));
  EXPECT_EQ(math::exp(-745.2), 0);
  EXPECT_EQ(math::exp(-745.1), std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(math::exp(1e308), kInfinity);
  EXPECT_EQ(math::exp(-1e308), 0);
  EXPECT_TRUE(std::isnan(math::exp(kNan)));
}

TEST(Log, IsWithinTwoUnitsInTheLastPlace) {
  EXPECT_LT(worst_error(math::log, kLog, log_points(1e-307, 1e308)), 2);
  EXPECT_LT(worst_error(math::log, kLog, uniform_points(0.5, 2)), 2);
  EXPECT_LT(worst_error(math::log, kLog, uniform_points(0.999, 1.001)), 2);
}

TEST(Log, OfFloatsIsTheFloatNextToIt) {
  EXPECT_LE(worst_float_error(math::log, kLog, log_points(1e-37, 1e38)), 1);
}

TEST(Log, KnowsItsEnds) {
  EXPECT_EQ(math::log(1), 0);
  EXPECT_FALSE(std::signbit(math::log(1)));
  EXPECT_EQ(math::log(0.0), -kInfinity);
  EXPECT_EQ(math::log(-0.0), -kInfinity);
  EXPECT_EQ(math::log(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(math::log(-1)));
  EXPECT_TRUE(std::isnan(math::log(kNan)));
  const double smallest = std::numeric_limits<double>::denorm_min();
  EXPECT_LT(error_in_ulp(math::log(smallest), kLog(smallest)), 2);
  EXPECT_LT(error_in_ulp(math::log(0x1.8p-1030), kLog(0x1.8p-1030)), 2);
  EXPECT_LT(error_in_ulp(math::log(std::numbers::e), 1), 2);
}

TEST(Log1p, IsWithinTwoUnitsInTheLastPlace) {
  EXPECT_LT(worst_error(math::log1p, kLog1p, log_points(1e-300, 1e300)), 2);
  EXPECT_LT(worst_error(math::log1p, kLog1p, uniform_points(-0.999, 1)), 2);
  EXPECT_LT(worst_error(math::log1p, kLog1p, uniform_points(-1e-5, 1e-5)), 2);
}

TEST(Log1p, KnowsItsEnds) {
  EXPECT_EQ(math::log1p(0), 0);
  EXPECT_TRUE(std::signbit(math::log1p(-0.0)));
  EXPECT_EQ(math::log1p(-1), -kInfinity);
  EXPECT_EQ(math::log1p(kInfinity), kInfinity);
  EXPECT_EQ(math::log1p(1e-320), 1e-320);
  EXPECT_TRUE(std::isnan(math::log1p(-1.5)));
  EXPECT_TRUE(std::isnan(math::log1p(kNan)));
}

TEST(Pow, IsWithinItsBoundWhereFloatsAreNormal) {
  for (std::uint64_t i = 0; i < kPoints; ++i) {
    const double x = std::exp(-80 + 160 * uniform_double(random_bits(test_seed(2), i, 0)));
    const double y = (2 * uniform_double(random_bits(test_seed(2), i, 1)) - 1) * 87 /
                     std::max(1.0, std::fabs(std::log(x)));
    const long double want = std::pow(static_cast<long double>(x), static_cast<long double>(y));
    ASSERT_LT(std::fabs(math::pow(x, y) / want - 1), 1e-13L) << x << " " << y;
  }
}

TEST(Pow, KnowsItsEnds) {
  EXPECT_EQ(math::pow(0, 0.5), 0);
  EXPECT_EQ(math::pow(0, 0), 1);
  EXPECT_EQ(math::pow(0, -0.5), kInfinity);
  EXPECT_EQ(math::pow(1, kInfinity), 1);
  EXPECT_EQ(math::pow(kInfinity, -0.5), 0);
  EXPECT_EQ(math::pow(kNan, 0), 1);
  EXPECT_TRUE(std::isnan(math::pow(kNan, 1)));
  EXPECT_TRUE(std::isnan(math::pow(-2, 2)));
}

/// p = Phi(z) is wrong by this much of z: a step of Newton's method on the smaller tail, in long
/// double.
double quantile_error(double p, double z) {
  const long double x = z;
  const long double root_two = std::sqrt(2.0L);
  const long double density = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi_v<long double>);
  const long double miss = p < 0.5
                               ? std::erfc(-x / root_two) / 2 - p
                               : (1 - static_cast<long double>(p)) - std::erfc(x / root_two) / 2;
  return static_cast<double>(std::fabs(miss / density));
}

TEST(NormalQuantile, IsTheInverseOfTheDistribution) {
  for (const double p : uniform_points(0.001, 0.999)) {
    const double z = math::normal_quantile(p);
    ASSERT_LT(quantile_error(p, z), 2e-15 * std::max(1.0, std::fabs(z))) << p;
  }
  for (const double p : log_points(1e-300, 0.1)) {
    const double z = math::normal_quantile(p);
    ASSERT_LT(quantile_error(p, z), 2e-15 * std::fabs(z)) << p;
  }
}

TEST(NormalQuantile, KnowsTablesAndEnds) {
  EXPECT_EQ(math::normal_quantile(0.5), 0);
  EXPECT_NEAR(math::normal_quantile(0.975), 1.9599639845400545, 1e-15);
  EXPECT_NEAR(math::normal_quantile(0.001), -3.0902323061678132, 1e-14);
  EXPECT_NEAR(math::normal_quantile(1e-20), -9.262340089798408, 1e-14);
  EXPECT_EQ(math::normal_quantile(0), -kInfinity);
  EXPECT_EQ(math::normal_quantile(1), kInfinity);
  EXPECT_TRUE(std::isnan(math::normal_quantile(-0.1)));
  EXPECT_TRUE(std::isnan(math::normal_quantile(1.1)));
  EXPECT_TRUE(std::isnan(math::normal_quantile(kNan)));
}

TEST(NormalQuantile, IsOddAboutTheMiddle) {
  for (const double p : {0x1p-52, 0x1p-10, 0.0625, 0.25, 0.4375}) {
    EXPECT_EQ(math::normal_quantile(1 - p), -math::normal_quantile(p));
  }
}

TEST(NormalQuantiles, HaveTheBitsOfOneByOne) {
  std::vector<double> p = uniform_points(0, 1);
  p.resize(1000);
  std::vector<double> z(p.size());
  for (const int n : {0, 1, 2, 3, 1000}) {
    math::normal_quantiles(p.data(), z.data(), n);
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
      ASSERT_EQ(z[i], math::normal_quantile(p[i]));
    }
  }
}

/// Digest of the bits of 1000 results.
std::uint64_t digest(Ours ours, double low, double high) {
  std::uint64_t digest = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const double x = low + (high - low) * uniform_double(random_bits(test_seed(5), i, 0));
    digest = mix_seeds(digest, std::bit_cast<std::uint64_t>(ours(x)));
  }
  return digest;
}

// From the same operations in Python, whose floats are binary64; the quantile is that of Python's
// own statistics.py.
TEST(Math, BitsAreThoseOfAnyBinary64) {
  EXPECT_EQ(digest(math::exp, -700, 700), 0x85da81af5d010dedu);
  EXPECT_EQ(digest(math::log, 0, 100), 0x8a63fcaa8c8a6fc7u);
  EXPECT_EQ(digest(math::log1p, -1, 10), 0x7c48c1bd5bb36ea1u);
  EXPECT_EQ(digest(math::normal_quantile, 0, 1), 0xb98da656f37bd8ccu);
}

}  // namespace
}  // namespace embertable
