#include "kernels/half_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "base/bfloat16.h"
#include "testing/slow_bfloat16.h"

namespace embertable {
namespace {

constexpr std::uint64_t kSeed = 7;

/// The key of a row by the product's functions.
std::uint64_t key_of(std::uint64_t step, std::uint64_t row, std::uint64_t occurrence = 0) {
  const std::uint64_t of_table = stream_of(mix_seeds(kSeed, 1), "t");
  return rounding_key(mix_seeds(of_table, step), row, occurrence);
}
slow::Rounding slowly(std::uint64_t step, std::uint64_t row, std::uint64_t occurrence = 0) {
  return {.seed = kSeed, .table = "t", .step = step, .row = row, .occurrence = occurrence};
}

/// Rounds one row; the numbers around it must stay.
std::vector<std::uint16_t> rounded(std::vector<float> row, std::uint64_t key, SimdLevel level) {
  std::vector<std::uint16_t> out(row.size() + 2, 0x1234);
  std::uint16_t* const half[] = {out.data() + 1};
  float* const wide[] = {row.data()};
  round_rows({half, wide, &key, 1, static_cast<std::int32_t>(row.size())}, level);
  EXPECT_EQ(out.front(), 0x1234);
  EXPECT_EQ(out.back(), 0x1234);
  return {out.begin() + 1, out.end() - 1};
}

TEST(HalfRows, RoundAsTheirDescriptionSaysForEveryDim) {
  for (std::int64_t dim = 1; dim <= 130; ++dim) {
    std::vector<float> row;
    for (std::int64_t c = 0; c < dim; ++c)
      row.push_back(
          std::ldexp(uniform_float(random_bits(1, dim, c)) - 0.5f, static_cast<int>(c % 9)));
    const slow::Rounding slow = slowly(3, 12345678901, 2);
    for (const SimdLevel level : usable_levels()) {
      const std::vector<std::uint16_t> got = rounded(row, key_of(3, 12345678901, 2), level);
      for (std::int64_t c = 0; c < dim; ++c)
        ASSERT_EQ(widened(got[c]), slow.of(row[c], static_cast<std::uint32_t>(c)))
            << to_string(level) << " dim " << dim << " column " << c;
    }
  }
}

TEST(HalfRows, KeepWhatIsNoFiniteNumberAndWhatIsExact) {
  const float nan = slow::float_of(0x7fffffff), quiet = NAN,
              signalling = slow::float_of(0x7f800001);
  const std::vector<float> row = {nan,  quiet, signalling, -nan, INFINITY,  -INFINITY,
                                  0.0f, -0.0f, 1.5f,       -2,   0x1p-133f, 0x1.fep127f};
  for (const SimdLevel level : usable_levels()) {
    for (std::uint64_t step = 1; step < 50; ++step) {
      const std::vector<std::uint16_t> got = rounded(row, key_of(step, 5), level);
      for (std::size_t c = 0; c < 4; ++c) ASSERT_TRUE(std::isnan(widened(got[c])));
      for (std::size_t c = 4; c < row.size(); ++c)
        ASSERT_EQ(got[c], slow::bits_of(row[c]) >> 16) << "column " << c;
    }
  }
}

// 0.1 and -0.3 are no numbers of bfloat16: both neighbours of a number that was clipped to them are
// candidates, and one is beyond.
TEST(HalfRows, StayBetweenTheirLimits) {
  struct Limits {
    float low, high;
  };
  for (const Limits limits : {Limits{-0.3f, 0.1f}, Limits{-INFINITY, 0.1f}, Limits{-0.3f, INFINITY},
                              Limits{-0x1.fffffep127f, 0x1.fffffep127f}, Limits{-0.25f, 0.5f}}) {
    for (const std::int32_t dim : {1, 15, 32, 77}) {
      std::vector<float> row;
      for (std::int32_t c = 0; c < dim; ++c) {
        const float x = uniform_float(random_bits(4, dim, c)) - 0.5f;
        const float wide = c % 5 == 4 && limits.high > 1 ? std::ldexp(x, 129) : x;
        row.push_back(c % 7 == 6 ? NAN : std::min(std::max(wide, limits.low), limits.high));
      }
      for (const SimdLevel level : usable_levels()) {
        for (std::uint64_t step = 1; step < 20; ++step) {
          std::vector<std::uint16_t> got(dim);
          std::uint16_t* const half[] = {got.data()};
          float* const wide[] = {row.data()};
          const std::uint64_t key = key_of(step, 3);
          round_rows({half, wide, &key, 1, dim, limits.low, limits.high}, level);
          for (std::int32_t c = 0; c < dim; ++c) {
            const float x = widened(got[c]);
            if (std::isnan(row[c])) {
              ASSERT_TRUE(std::isnan(x));
              continue;
            }
            ASSERT_TRUE(x >= limits.low && x <= limits.high) << x << " for " << row[c];
            ASSERT_EQ(x, slowly(step, 3).between(row[c], static_cast<std::uint32_t>(c), limits.low,
                                                 limits.high))
                << to_string(level) << " column " << c;
          }
        }
      }
    }
  }
}

TEST(HalfRows, WidenToTheSameNumbersForEveryDim) {
  for (std::int32_t dim = 1; dim <= 70; ++dim) {
    std::vector<std::uint16_t> numbers(dim);
    for (std::int32_t c = 0; c < dim; ++c)
      numbers[c] = static_cast<std::uint16_t>(random_bits(2, dim, c));
    for (const SimdLevel level : usable_levels()) {
      std::vector<float> row(dim + 1, 7.0f);
      std::uint16_t* const half[] = {numbers.data()};
      float* const wide[] = {row.data()};
      widen_rows({half, wide, nullptr, 1, dim}, level);
      for (std::int32_t c = 0; c < dim; ++c)
        ASSERT_EQ(slow::bits_of(row[c]), std::uint32_t{numbers[c]} << 16);
      ASSERT_EQ(row[dim], 7.0f);
    }
  }
}

TEST(RoundingKeys, AreThoseOfTheirRows) {
  const RoundingKeys keys(11, 5, 3);
  for (std::uint64_t i = 0; i < 100; ++i) ASSERT_EQ(keys.at(i), rounding_key(11, 5 + i * 3, 0));
}

TEST(Bfloat16, RoundsToNearestEven) {
  EXPECT_EQ(rounded_to_nearest(1.0f), 0x3f80);
  EXPECT_EQ(rounded_to_nearest(slow::float_of(0x3f808000)), 0x3f80);  // halfway: to the even one
  EXPECT_EQ(rounded_to_nearest(slow::float_of(0x3f818000)), 0x3f82);
  EXPECT_EQ(rounded_to_nearest(slow::float_of(0x3f808001)), 0x3f81);
  EXPECT_EQ(rounded_to_nearest(-INFINITY), 0xff80);
  EXPECT_EQ(rounded_to_nearest(-0.0f), 0x8000);
  EXPECT_TRUE(std::isnan(widened(rounded_to_nearest(slow::float_of(0x7f800001)))));
}

/// The carries of `rows` rows of 64 columns in one step as numbers of mean 0 and variance 1.
std::vector<double> carries(std::uint64_t step, std::int64_t rows, std::uint64_t occurrence = 0) {
  std::vector<double> all;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::uint32_t c = 0; c < 64; ++c) {
      const std::uint32_t carry =
          rounding_carry(key_of(step, static_cast<std::uint64_t>(r), occurrence), c);
      all.push_back(((carry + 0.5) / 65536 - 0.5) * std::sqrt(12.0));
    }
  return all;
}
constexpr std::int64_t kManyRows = 20000;
constexpr int kColumns = 64;

/// In units of its standard deviation, the mean product of two lists of independent numbers.
double correlation(const double* a, const double* b, std::int64_t count, std::int64_t apart = 1) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += a[i * apart] * b[i * apart];
  return sum / std::sqrt(static_cast<double>(count));
}

// The bounds below are those that independent numbers stay under but for one seed in some thousand:
// five standard deviations for the largest of up to 4,096 numbers.

TEST(RoundingBias, IsNoneInAnyColumn) {
  const std::vector<double> all = carries(1, kManyRows);
  double total = 0;
  for (int c = 0; c < kColumns; ++c) {
    double sum = 0;
    for (std::int64_t r = 0; r < kManyRows; ++r) sum += all[r * kColumns + c];
    EXPECT_LT(std::fabs(sum) / std::sqrt(kManyRows), 5) << "column " << c;
    total += sum;
  }
  EXPECT_LT(std::fabs(total) / std::sqrt(kManyRows * kColumns), 4);
}

TEST(RoundingBias, IsNoneForAnyShareOfTheWay) {
  for (const std::uint32_t low : {1u, 655u, 16384u, 32768u, 49152u, 65000u}) {
    const double p = low / 65536.0;
    std::int64_t up = 0;
    for (std::int64_t r = 0; r < kManyRows; ++r)
      for (std::uint32_t c = 0; c < kColumns; ++c)
        up += rounding_carry(key_of(2, static_cast<std::uint64_t>(r)), c) + low >= 65536 ? 1 : 0;
    const double n = kManyRows * kColumns;
    EXPECT_LT(std::fabs(static_cast<double>(up) - n * p), 5 * std::sqrt(n * p * (1 - p)) + 1)
        << low;
  }
}

TEST(RoundingCarries, DoNotCorrelateAcrossColumns) {
  const std::vector<double> all = carries(3, kManyRows);
  double squares = 0;
  for (int a = 0; a < kColumns; ++a)
    for (int b = a + 1; b < kColumns; ++b) {
      const double z = correlation(all.data() + a, all.data() + b, kManyRows, kColumns);
      EXPECT_LT(std::fabs(z), 5) << "columns " << a << " and " << b;
      squares += z * z;
    }
  // The mean of 2,016 squares, each of mean 1 and variance 2.
  EXPECT_NEAR(squares / 2016, 1, 5 * std::sqrt(2.0 / 2016));
}

/// Whether small steps add up depends on the carries' upper ends, which a linear correlation hardly
/// sees.
TEST(RoundingCarries, RoundUpIndependentlyAcrossColumns) {
  const std::vector<double> all = carries(4, kManyRows);
  for (const double p : {0.5, 0.1, 0.02}) {
    const double border = (1 - p - 0.5) * std::sqrt(12.0);
    std::vector<double> up(all.size());
    for (std::size_t i = 0; i < all.size(); ++i)
      up[i] = ((all[i] > border ? 1.0 : 0.0) - p) / std::sqrt(p * (1 - p));
    for (int a = 0; a < kColumns; ++a)
      for (int b = a + 1; b < kColumns; ++b)
        EXPECT_LT(std::fabs(correlation(up.data() + a, up.data() + b, kManyRows, kColumns)), 5.5)
            << "columns " << a << " and " << b << ", share " << p;
  }
}

TEST(RoundingCarries, DoNotCorrelateAcrossRowsStepsAndOccurrences) {
  const std::vector<double> all = carries(5, kManyRows);
  const std::int64_t count = (kManyRows - 64) * kColumns;
  for (const std::int64_t apart : {1, 2, 3, 16, 64})
    EXPECT_LT(std::fabs(correlation(all.data(), all.data() + apart * kColumns, count)), 5)
        << apart << " rows apart";
  for (const std::uint64_t step : {6u, 7u, 13u, 1005u})
    EXPECT_LT(std::fabs(correlation(all.data(), carries(step, kManyRows).data(), count)), 5)
        << "steps 5 and " << step;
  for (const std::uint64_t occurrence : {1u, 2u, 100u})
    EXPECT_LT(std::fabs(correlation(all.data(), carries(5, kManyRows, occurrence).data(), count)),
              5)
        << "occurrences 0 and " << occurrence;
}

/// A number that takes many steps of a hundredth of the distance to its neighbour arrives where the
/// steps in real numbers do.
TEST(RoundingBias, LetsSmallStepsAddUp) {
  constexpr int kSteps = 400;
  double sum = 0;
  for (std::uint64_t r = 0; r < 500; ++r) {
    std::vector<float> row(32, 1.0f);
    for (std::uint64_t step = 1; step <= kSteps; ++step) {
      for (float& x : row) x += 0x1p-7f / 100;
      const std::vector<std::uint16_t> half = rounded(row, key_of(step, r), SimdLevel::kScalar);
      for (std::size_t c = 0; c < row.size(); ++c) row[c] = widened(half[c]);
    }
    sum = std::accumulate(row.begin(), row.end(), sum);
  }
  // The standard deviation of one number is 2^-7 * sqrt(kSteps * 0.01 * 0.99), of the mean of
  // 16,000 it is 1/126 of that: 0.00012.
  EXPECT_NEAR(sum / 16000, 1 + kSteps * 0x1p-7 / 100, 0.0005);
}

}  // namespace
}  // namespace embertable
