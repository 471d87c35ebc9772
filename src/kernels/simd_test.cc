#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/level.h"
#include "testing/guarded_floats.h"

#define EMBERTABLE_LEVEL_BODY "kernels/simd_test.inl"
#include "kernels/for_each_level.inl"

namespace embertable {
namespace {

constexpr int kOperations = scalar::kOperations;

/// The same by the book, one lane at a time.
std::vector<float> by_the_book(const float* a, const float* b) {
  float fold[16];
  std::memcpy(fold, a, sizeof fold);
  for (int half = 8; half > 0; half /= 2)
    for (int l = 0; l < half; ++l) fold[l] = fold[l] + fold[l + half];
  std::vector<float> all(kOperations * 16);
  for (int l = 0; l < 16; ++l) {
    const float x = a[l], y = b[l];
    const float results[kOperations] = {x + y,
                                        x - y,
                                        x * y,
                                        x / y,
                                        std::sqrt(x),
                                        x < y ? y : x,
                                        x > y ? y : x,
                                        x == 0 ? 0.0f : x / y,
                                        std::copysign(x, y),
                                        std::fabs(x),
                                        -x,
                                        static_cast<float>((x > 0) - (x < 0)),
                                        x < y ? x : y,
                                        x == y ? 0.0f : x,
                                        fold[0],
                                        std::sqrt(a[0]),
                                        0.0f,
                                        0.0f,
                                        l < 1 ? x : 0.0f,
                                        l < 8 ? x : 0.0f,
                                        l < 9 ? x : 0.0f,
                                        l < 15 ? x : 0.0f,
                                        x};
    for (int i = 0; i < kOperations; ++i) all[i * 16 + l] = results[i];
  }
  return all;
}

/// Equal bits; all NaNs are one.
bool same(float x, float y) {
  return std::memcmp(&x, &y, sizeof x) == 0 || (std::isnan(x) && std::isnan(y));
}

TEST(Simd, EveryOperationGivesTheBitsOfOneFloatAtATime) {
  const float inf = std::numeric_limits<float>::infinity(),
              nan = std::numeric_limits<float>::quiet_NaN();
  const float tiny = std::numeric_limits<float>::denorm_min();
  const std::vector<float> values = {0,    -0.0f, 1,   -1,   3,   -0.3f,  1e-38f, -1e38f,
                                     tiny, -tiny, inf, -inf, nan, 7e-20f, 0.1f,   2};
  for (const SimdLevel level : usable_levels()) {
    for (std::size_t shift = 0; shift < 16; ++shift) {
      GuardedFloats a(16), b(16);
      for (std::size_t l = 0; l < 16; ++l)
        a[static_cast<std::int64_t>(l)] = values[l],
        b[static_cast<std::int64_t>(l)] = values[(l + shift) % 16];
      std::vector<float> got(kOperations * 16);
      EMBERTABLE_AT_LEVEL(level, run_operations(a.data(), b.data(), got.data()));
      const std::vector<float> want = by_the_book(a.data(), b.data());
      for (std::size_t i = 0; i < want.size(); ++i)
        EXPECT_TRUE(same(got[i], want[i]))
            << to_string(level) << " operation " << i / 16 << " lane " << i % 16 << ": " << got[i]
            << " instead of " << want[i];
    }
  }
}

TEST(Simd, SumsFoldByHalves) {
  std::vector<float> rows(256), want(16);
  for (std::size_t i = 0; i < 256; ++i) rows[i] = 1.0f / static_cast<float>(i * i + 3);
  for (std::size_t r = 0; r < 16; ++r) {
    std::vector<float> fold(rows.begin() + static_cast<std::ptrdiff_t>(r * 16),
                            rows.begin() + static_cast<std::ptrdiff_t>(r * 16 + 16));
    for (std::size_t half = 8; half > 0; half /= 2)
      for (std::size_t l = 0; l < half; ++l) fold[l] += fold[l + half];
    want[r] = fold[0];
  }
  for (const SimdLevel level : usable_levels()) {
    std::vector<float> got(16);
    EMBERTABLE_AT_LEVEL(level, run_sums(rows.data(), got.data()));
    EXPECT_EQ(got, want) << to_string(level);
  }
}

TEST(Simd, FindsNanInAnyLane) {
  for (const SimdLevel level : usable_levels()) {
    GuardedFloats numbers(32, std::numeric_limits<float>::infinity());
    const auto found = [&] {
      return EMBERTABLE_AT_LEVEL(level, run_any_nan(numbers.data(), numbers.data() + 16));
    };
    EXPECT_FALSE(found()) << to_string(level);
    for (std::int64_t i = 0; i < numbers.size(); ++i) {
      const float number = std::exchange(numbers[i], std::numeric_limits<float>::quiet_NaN());
      EXPECT_TRUE(found()) << to_string(level) << " lane " << i;
      numbers[i] = number;
    }
  }
}

TEST(Simd, PairsOfHalvesComeInOrder) {
  std::vector<std::uint16_t> halves(32);
  std::vector<float> want(32);
  for (std::size_t i = 0; i < 32; ++i) {
    // Signs, exponents and fractions that differ between neighbours; both bytes count.
    halves[i] = static_cast<std::uint16_t>(0x3c81 + i * 0x0107 + (i % 3 == 0 ? 0x8000 : 0));
    want[i] = std::bit_cast<float>(static_cast<std::uint32_t>(halves[i]) << 16);
  }
  for (const SimdLevel level : usable_levels()) {
    std::vector<float> got(32);
    EMBERTABLE_AT_LEVEL(level, run_pairs(halves.data(), got.data()));
    EXPECT_EQ(got, want) << to_string(level);
  }
}

TEST(Simd, PartsTouchNothingElse) {
  std::vector<float> from(16);
  for (std::size_t i = 0; i < 16; ++i) from[i] = static_cast<float>(i + 1);
  for (const SimdLevel level : usable_levels()) {
    for (int n = 0; n <= 16; ++n) {
      GuardedFloats to(n + 1, -7);
      EMBERTABLE_AT_LEVEL(level, run_store_part(from.data(), to.data() + 1, n));
      EXPECT_EQ(to[0], -7);
      for (int i = 0; i < n; ++i) EXPECT_EQ(to[i + 1], from[i]);
    }
  }
}

}  // namespace
}  // namespace embertable
