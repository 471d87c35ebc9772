#include "kernels/scatter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "testing/guarded_floats.h"

namespace embertable {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

float promised(RowOperation operation, float x, float v) {
  switch (operation) {
    case RowOperation::kAdd:
      return x + v;
    case RowOperation::kSub:
      return x - v;
    case RowOperation::kMul:
      return x * v;
    case RowOperation::kDiv:
      return x / v;
    case RowOperation::kMin:
      return std::isnan(x) || std::isnan(v) ? kNan : v < x ? v : x;
    case RowOperation::kMax:
      return std::isnan(x) || std::isnan(v) ? kNan : x < v ? v : x;
    case RowOperation::kUpdate:
      return v;
  }
  return 0;
}

bool same(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

/// Changes rows by `count` entries. Rows and values stand between pages that cannot be touched.
void expect_promise(RowOperation operation, std::int64_t dim, std::int64_t stride, bool with_from,
                    std::int64_t count) {
  constexpr std::int64_t kRows = 7;
  const std::int64_t first = count * 23 / 40;
  std::mt19937 random(static_cast<unsigned>(dim * 100 + stride));
  const float few[] = {-2, -0.0f, 0, 0.1f, 1, 3, kNan, 1e30f};
  GuardedFloats start((kRows - 1) * stride + dim), values(count * dim);
  for (std::int64_t i = 0; i < start.size(); ++i) start[i] = few[random() % 8];
  for (std::int64_t i = 0; i < values.size(); ++i) values[i] = few[random() % 8];
  std::vector<std::uint64_t> row(count), from(count);
  for (std::uint64_t& r : row) r = random() % kRows;
  for (std::size_t i = 0; i < from.size(); ++i)
    from[i] = with_from ? random() % static_cast<std::uint64_t>(count) : i;

  std::vector<float> expected(start.begin(), start.end());
  for (std::size_t i = 0; i < row.size(); ++i)
    for (std::int64_t c = 0; c < dim; ++c) {
      float& x = expected[row[i] * static_cast<std::size_t>(stride) + static_cast<std::size_t>(c)];
      x = promised(operation, x, values[static_cast<std::int64_t>(from[i]) * dim + c]);
    }
  for (const SimdLevel level : usable_levels()) {
    GuardedFloats rows(start.size());
    std::copy(start.begin(), start.end(), rows.data());
    // In two calls, the first of which sees a part of what the second has.
    ScatterRows args = {.table = rows.data(),
                        .stride = stride,
                        .dim = dim,
                        .row = row.data(),
                        .from = with_from ? from.data() : nullptr,
                        .values = values.data(),
                        .count = first,
                        .soon = std::max<std::int64_t>(0, count - first - 1)};
    scatter_rows(operation, args, level);
    args.row += first;
    if (with_from)
      args.from += first;
    else
      args.values += first * dim;
    args.count = count - first;
    args.soon = 0;
    scatter_rows(operation, args, level);
    for (std::int64_t i = 0; i < rows.size(); ++i)
      ASSERT_TRUE(same(rows[i], expected[i])) << to_string(level) << ", dim " << dim << ", float "
                                              << i << ": " << rows[i] << " not " << expected[i];
  }
}

TEST(ScatterRows, EveryOperationMeetsRepeatedRowsInTheirOrder) {
  for (const RowOperation operation :
       {RowOperation::kAdd, RowOperation::kSub, RowOperation::kMul, RowOperation::kDiv,
        RowOperation::kMin, RowOperation::kMax, RowOperation::kUpdate})
    for (const std::int64_t dim : {1, 3, 15, 16, 17, 32, 64, 65, 128, 300})
      for (const std::int64_t gap : {0, 1, 16})
        for (const bool with_from : {false, true})
          for (const std::int64_t count : {0, 40})
            expect_promise(operation, dim, dim + gap, with_from, count);
}

}  // namespace
}  // namespace embertable
