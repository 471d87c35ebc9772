#include "checkpoint/stored_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/random.h"
#include "testing/slow_bfloat16.h"

namespace embertable::checkpoint {
namespace {

std::vector<std::byte> stored(RowType type, std::int64_t dim, const std::vector<float>& rows) {
  std::vector<std::byte> bytes(rows.size() / dim * stored_row_bytes(type, dim));
  store_rows(type, dim, rows, bytes.data());
  return bytes;
}

std::vector<float> back(RowType type, std::int64_t dim, const std::vector<float>& rows) {
  std::vector<float> numbers(rows.size(), -7);
  unstore_rows(type, dim, stored(type, dim, rows).data(), numbers);
  return numbers;
}

TEST(StoredRows, HaveTheirBytes) {
  EXPECT_EQ(stored_row_bytes(RowType::kFloat32, 5), 20);
  EXPECT_EQ(stored_row_bytes(RowType::kBfloat16, 5), 10);
  EXPECT_EQ(stored_row_bytes(RowType::kInt8, 5), 13);
  EXPECT_EQ(stored_dtype(RowType::kFloat32), "F32");
  EXPECT_EQ(stored_dtype(RowType::kBfloat16), "BF16");
  EXPECT_EQ(stored_dtype(RowType::kInt8), "U8");
}

TEST(StoredRows, OfBfloat16AreTheNearestOnes) {
  const std::vector<float> rows = {
      1, slow::float_of(0x3f808000), slow::float_of(0x3f818000), -INFINITY, -0.0f, 3.0e-39f};
  const std::vector<float> got = back(RowType::kBfloat16, 3, rows);
  for (std::size_t i = 0; i < rows.size(); ++i)
    EXPECT_EQ(slow::bits_of(got[i]), slow::bits_of(slow::nearest_bfloat16(rows[i])));
}

/// By hand: the least number is -1, the largest 254, so the scale is 1.
TEST(StoredRows, OfInt8AreBytesThenScaleAndOffset) {
  const std::vector<std::byte> bytes = stored(RowType::kInt8, 4, {-1, 0, 254, 99.6f});
  const int want[] = {0, 1, 255, 101};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(std::to_integer<int>(bytes[i]), want[i]);
  float by[2];
  std::memcpy(by, bytes.data() + 4, sizeof(by));
  EXPECT_EQ(by[0], 1);
  EXPECT_EQ(by[1], -1);
  EXPECT_EQ(back(RowType::kInt8, 4, {-1, 0, 254, 99.6f}), (std::vector<float>{-1, 0, 254, 100}));
}

TEST(StoredRows, OfInt8AreOffByHalfAScale) {
  for (const std::int64_t dim : {1, 2, 7, 64}) {
    for (std::uint64_t r = 0; r < 200; ++r) {
      std::vector<float> row;
      for (std::int64_t c = 0; c < dim; ++c)
        row.push_back(std::ldexp(uniform_float(random_bits(dim, r, c)) - 0.5f,
                                 static_cast<int>(r % 20) - 10));
      const auto [least, largest] = std::ranges::minmax(row);
      const double scale = (double{largest} - double{least}) / 255;
      const double rounding = 0x1p-23 * std::max(std::fabs(least), std::fabs(largest));
      const std::vector<float> got = back(RowType::kInt8, dim, row);
      for (std::int64_t c = 0; c < dim; ++c)
        ASSERT_LE(std::fabs(double{got[c]} - double{row[c]}), scale / 2 * (1 + 1e-5) + rounding)
            << "dim " << dim << " row " << r << " column " << c;
    }
  }
}

TEST(StoredRows, OfInt8KeepEqualAndHugeNumbers) {
  EXPECT_EQ(back(RowType::kInt8, 3, {0.1f, 0.1f, 0.1f}), (std::vector<float>{0.1f, 0.1f, 0.1f}));
  EXPECT_EQ(back(RowType::kInt8, 2, {0, 0}), (std::vector<float>{0, 0}));
  const std::vector<float> huge = back(RowType::kInt8, 2, {-1.5e38f, 1.5e38f});
  EXPECT_EQ(huge[0], -1.5e38f);
  EXPECT_NEAR(huge[1], 1.5e38f, 1e33f);
  const std::vector<float> tiny = back(RowType::kInt8, 2, {0, 1e-45f});
  EXPECT_EQ(tiny[0], 0);
}

}  // namespace
}  // namespace embertable::checkpoint
