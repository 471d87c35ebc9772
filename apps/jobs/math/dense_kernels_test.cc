#include "apps/jobs/math/dense_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <vector>

#include "base/random.h"

namespace embertable::jobs {
namespace {

using Floats = std::vector<float>;

Floats numbers(std::int64_t count, std::uint64_t stream) {
  Floats values(count);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = 2 * uniform_float(random_bits(stream, i, 0)) - 1;
  return values;
}

struct Sizes {
  std::int64_t rows, columns, depth;
};

void PrintTo(const Sizes& s, std::ostream* out) {
  *out << s.rows << " x " << s.columns << ", " << s.depth << " terms";
}

class Products : public testing::TestWithParam<Sizes> {
 protected:
  /// What lies beyond the last column of a row of c must stay.
  static constexpr std::int64_t kGap = 3;
  static constexpr float kUntouched = 77;

  Products() {
    const auto [rows, columns, depth] = GetParam();
    a_ = numbers(rows * depth, 1);
    b_ = numbers(depth * columns, 2);
    start_ = numbers(columns, 3);
    gate_ = numbers(rows * columns, 4);
    product_ = {.rows = rows,
                .columns = columns,
                .depth = depth,
                .a = a_.data(),
                .a_row = depth,
                .b = b_.data(),
                .b_depth = columns,
                .c_row = columns + kGap,
                .start = start_.data()};
  }

  Floats run(SimdLevel level) {
    Floats c(product_.rows * product_.c_row, kUntouched);
    product_.c = c.data();
    product(product_, level);
    return c;
  }

  /// Term by term, in binary32.
  Floats expected() const {
    Floats c(product_.rows * product_.c_row, kUntouched);
    for (std::int64_t m = 0; m < product_.rows; ++m) {
      for (std::int64_t n = 0; n < product_.columns; ++n) {
        float sum = 0;
        if (product_.start != nullptr)
          sum = product_.scale * product_.start[m * product_.start_row + n];
        for (std::int64_t k = 0; k < product_.depth; ++k) {
          const float term = product_.a[m * product_.a_row + k * product_.a_depth] *
                             product_.b[k * product_.b_depth + n];
          sum = sum + term;
        }
        if (product_.relu && sum < 0) sum = 0;
        if (product_.gate != nullptr && !(product_.gate[m * product_.gate_row + n] > 0)) sum = 0;
        c[m * product_.c_row + n] = sum;
      }
    }
    return c;
  }

  void expect_at_every_level() {
    for (const SimdLevel level : usable_levels()) EXPECT_EQ(run(level), expected());
  }

  Floats a_, b_, start_, gate_;
  Product product_;
};

TEST_P(Products, AreSumsInOrder) { expect_at_every_level(); }

TEST_P(Products, ReadAColumnByColumn) {
  product_.a_row = 1;
  product_.a_depth = product_.rows;
  expect_at_every_level();
}

TEST_P(Products, StartFromNothingAndEndAtZero) {
  product_.start = nullptr;
  product_.relu = true;
  expect_at_every_level();
}

TEST_P(Products, StartFromRowsOfTheirOwnAndPassTheGate) {
  const Floats rows = numbers(product_.rows * product_.columns, 5);
  product_.start = rows.data();
  product_.start_row = product_.columns;
  product_.scale = 0.25f;
  product_.gate = gate_.data();
  product_.gate_row = product_.columns;
  expect_at_every_level();
}

TEST_P(Products, MayStartFromWhatTheyReplace) {
  const Floats before = numbers(product_.rows * product_.c_row, 6);
  for (const SimdLevel level : usable_levels()) {
    Floats c = before;
    product_.start = before.data();
    product_.start_row = product_.c_row;
    product_.scale = 0.5f;
    const Floats wanted = expected();
    product_.c = c.data();
    product_.start = c.data();
    product(product_, level);
    for (std::int64_t m = 0; m < product_.rows; ++m) {
      for (std::int64_t n = 0; n < product_.columns; ++n) {
        const auto at = static_cast<std::size_t>(m * product_.c_row + n);
        ASSERT_EQ(c[at], wanted[at]) << m << " " << n;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, Products,
                         testing::Values(Sizes{1, 1, 1}, Sizes{1, 16, 0}, Sizes{2, 15, 3},
                                         Sizes{5, 17, 127}, Sizes{6, 64, 128}, Sizes{7, 100, 129},
                                         Sizes{13, 33, 300}, Sizes{0, 8, 8}));

TEST(AddDots, AddsTheProductOfRows) {
  for (const std::int64_t columns : {1, 15, 16, 17, 40}) {
    const Floats a = numbers(3 * columns, 1), b = numbers(columns, 2);
    for (const bool ones : {false, true}) {
      Floats first;
      for (const SimdLevel level : usable_levels()) {
        Floats out = {1, 2, 3};
        add_dots({.rows = 3,
                  .columns = columns,
                  .a = a.data(),
                  .b = ones ? nullptr : b.data(),
                  .out = out.data()},
                 level);
        if (first.empty()) first = out;
        EXPECT_EQ(out, first);
      }
      for (std::size_t m = 0; m < 3; ++m) {
        double sum = static_cast<double>(m) + 1;
        for (std::size_t n = 0; n < b.size(); ++n) sum += a[m * b.size() + n] * (ones ? 1.0 : b[n]);
        EXPECT_NEAR(first[m], sum, 1e-5);
      }
    }
  }
}

TEST(Adagrad, StepsAgainstTheSumOfTheParts) {
  for (const SimdLevel level : usable_levels()) {
    // g = 1 + 2, s = 9 + 9; the second one has had no gradient at all.
    Floats weights = {2, 3}, accumulators = {9, 0};
    const Floats gradients = {1, -1, /**/ 2, 1};
    adagrad_step({.size = 2,
                  .weights = weights.data(),
                  .accumulators = accumulators.data(),
                  .gradients = gradients.data(),
                  .parts = 2,
                  .part_stride = 2,
                  .rate = 0.5f},
                 level);
    EXPECT_EQ(weights, (Floats{2 - 0.5f * 3 / std::sqrt(18.0f), 3}));
    EXPECT_EQ(accumulators, (Floats{18, 0}));
  }
}

TEST(Adagrad, AddsThePartOfTheWeightToItsGradient) {
  for (const SimdLevel level : usable_levels()) {
    // g = 3 + 0.5 * 2, s = 9 + 16
    Floats weights = {2}, accumulators = {9};
    const Floats gradients = {3};
    adagrad_step({.size = 1,
                  .weights = weights.data(),
                  .accumulators = accumulators.data(),
                  .gradients = gradients.data(),
                  .parts = 1,
                  .part_stride = 1,
                  .rate = 0.5f,
                  .regularization = 0.5f},
                 level);
    EXPECT_EQ(accumulators, (Floats{25}));
    EXPECT_EQ(weights, (Floats{2 - 0.5f * 4 / 5}));
  }
}

TEST(SlopeRows, AreTheSlopeAndAPartOfTheRow) {
  for (const SimdLevel level : usable_levels()) {
    Floats x(2 * 17);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
    const Floats slopes = {10, 20};
    slope_rows(
        {.rows = 2, .columns = 17, .x = x.data(), .slopes = slopes.data(), .regularization = 0.5f},
        level);
    for (std::size_t i = 0; i < x.size(); ++i)
      EXPECT_EQ(x[i], (i < 17 ? 10.0f : 20.0f) + 0.5f * static_cast<float>(i));
  }
}

}  // namespace
}  // namespace embertable::jobs
