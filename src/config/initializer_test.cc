#include "embertable/initializer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "embertable/errors.h"
#include "testing/flush_to_zero.h"
#include "testing/refusal.h"

namespace embertable {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> filled(const Initializer& initializer, const RowRange& range,
                          std::uint64_t stream = 3) {
  std::vector<float> out(range.rows * range.dim, kNan);
  initializer.fill(range, stream, out);
  return out;
}

/// The values of a table with `rows` rows.
std::vector<float> table(const Initializer& initializer, std::int64_t rows, std::int32_t dim,
                         std::uint64_t stream = 3) {
  return filled(initializer, {.first_row = 0, .rows = rows, .vocabulary_size = rows, .dim = dim},
                stream);
}

/// Row 5, columns 0..count-1.
std::vector<float> row_five(const Initializer& initializer, std::int32_t count) {
  return filled(initializer, {.first_row = 5, .rows = 1, .vocabulary_size = 6, .dim = count});
}

std::vector<Initializer> random_kinds() {
  return {Initializer::uniform(-1, 1), Initializer::normal(0, 1),
          Initializer::truncated_normal(0, 1)};
}

struct Moments {
  double mean = 0;
  double stddev = 0;
};
Moments moments_of(const std::vector<float>& values) {
  double sum = 0;
  double squares = 0;
  for (const double x : values) {
    sum += x;
    squares += x * x;
  }
  const auto n = static_cast<double>(values.size());
  return {sum / n, std::sqrt(squares / n - (sum / n) * (sum / n))};
}

double share_above(const std::vector<float>& values, float bound) {
  return static_cast<double>(std::ranges::count_if(values, [&](float x) { return x > bound; })) /
         static_cast<double>(values.size());
}

TEST(Initializer, ZerosAndConstantsFillEveryElement) {
  EXPECT_EQ(table(Initializer::zeros(), 2, 2), (std::vector<float>{0, 0, 0, 0}));
  EXPECT_EQ(table(Initializer::constant(0.5f), 1, 3), (std::vector<float>{0.5f, 0.5f, 0.5f}));
  EXPECT_TRUE(table(Initializer::constant(1), 0, 3).empty());
}

TEST(Initializer, IsZeroForPlusZeroAlone) {
  EXPECT_TRUE(Initializer::zeros().is_zero());
  EXPECT_TRUE(Initializer::constant(0).is_zero());
  EXPECT_FALSE(Initializer::constant(-0.0f).is_zero());
  EXPECT_FALSE(Initializer::constant(1).is_zero());
  EXPECT_FALSE(Initializer::normal(0, 0).is_zero());
}

TEST(Initializer, RowsDependOnTheirNumberAlone) {
  for (const Initializer& initializer : random_kinds()) {
    const std::vector<float> whole = table(initializer, 10, 70);
    const std::vector<float> part =
        filled(initializer, {.first_row = 4, .rows = 3, .vocabulary_size = 99, .dim = 70});
    EXPECT_TRUE(std::ranges::equal(part, std::span(whole).subspan(4 * 70, 3 * 70)))
        << initializer.to_string();
  }
}

TEST(Initializer, ColumnsDependOnTheirNumberAlone) {
  for (const Initializer& initializer : random_kinds()) {
    const std::vector<float> wide = row_five(initializer, 200);
    for (const std::int32_t dim : {1, 2, 63, 64, 65, 128, 129}) {
      EXPECT_TRUE(std::ranges::equal(row_five(initializer, dim), std::span(wide).first(dim)))
          << initializer.to_string() << " dim " << dim;
    }
  }
}

TEST(Initializer, StreamAndSeedChooseTheNumbers) {
  EXPECT_NE(table(Initializer::uniform(0, 1), 1, 8, 3), table(Initializer::uniform(0, 1), 1, 8, 4));
  EXPECT_NE(table(Initializer::uniform(0, 1, 1), 1, 8), table(Initializer::uniform(0, 1, 2), 1, 8));
  EXPECT_EQ(table(Initializer::uniform(0, 1, 1), 1, 8), table(Initializer::uniform(0, 1, 1), 1, 8));
}

// From the formulas, worked in Python with its own normal quantile.
TEST(Initializer, RandomNumbersHaveFixedValues) {
  EXPECT_EQ(row_five(Initializer::uniform(-1, 1, 7), 3),
            (std::vector<float>{-0x1.bfa17cp-1f, 0x1.6919cp-1f, 0x1.efbb2p-4f}));
  const std::vector<float> normal = row_five(Initializer::normal(10, 0.5f, 7), 3);
  EXPECT_FLOAT_EQ(normal[0], 9.234402656555176f);
  EXPECT_FLOAT_EQ(normal[1], 10.523905754089355f);
  EXPECT_FLOAT_EQ(normal[2], 10.076136589050293f);
  const std::vector<float> truncated = row_five(Initializer::truncated_normal(0, 0.25f, 7), 18);
  EXPECT_FLOAT_EQ(truncated[0], -0.38279879093170166f);
  EXPECT_FLOAT_EQ(truncated[1], 0.2619529664516449f);
  EXPECT_FLOAT_EQ(truncated[17], 0.32279953360557556f);  // its second draw
}

TEST(Initializer, UniformIsFlatAndStaysBelowHigh) {
  const std::vector<float> values = table(Initializer::uniform(-2, 6), 1000, 100);
  const auto [least, most] = std::ranges::minmax(values);
  EXPECT_GE(least, -2);
  EXPECT_LT(most, 6);
  EXPECT_NEAR(moments_of(values).mean, 2, 0.03);
  EXPECT_NEAR(moments_of(values).stddev, 8 / std::sqrt(12.0), 0.03);
  EXPECT_NEAR(share_above(values, 4), 0.25, 0.01);
}

TEST(Initializer, UniformInTheNarrowestRangeGivesItsLowEnd) {
  const float high = std::nextafter(1.0f, 2.0f);
  for (const float x : table(Initializer::uniform(1, high), 10, 10)) EXPECT_EQ(x, 1);
}

TEST(Initializer, UniformOverAllFloatsIsFinite) {
  constexpr float kMost = std::numeric_limits<float>::max();
  for (const float x : table(Initializer::uniform(-kMost, kMost), 10, 10))
    EXPECT_TRUE(std::isfinite(x));
}

TEST(Initializer, NormalHasTheSharesOfTheDistribution) {
  const std::vector<float> values = table(Initializer::normal(1, 2), 1000, 100);
  EXPECT_NEAR(moments_of(values).mean, 1, 0.04);
  EXPECT_NEAR(moments_of(values).stddev, 2, 0.03);
  EXPECT_NEAR(share_above(values, 1), 0.5, 0.01);
  EXPECT_NEAR(share_above(values, 3), 0.158655, 0.006);
  EXPECT_NEAR(share_above(values, 5), 0.022750, 0.003);
  EXPECT_NEAR(share_above(values, 7), 0.001350, 0.0006);
  EXPECT_EQ(table(Initializer::normal(1, 0), 1, 2), (std::vector<float>{1, 1}));
}

TEST(ConfigCases, Case08_DefaultInitializerIsATruncatedNormal) {
  const Initializer initializer = Initializer::default_for(16);
  EXPECT_EQ(initializer.to_string(), "truncated_normal(mean=0, stddev=0.25)");
  const std::vector<float> values = table(initializer, 6250, 16);
  EXPECT_LE(std::ranges::max(values), 0.5f);
  EXPECT_GE(std::ranges::min(values), -0.5f);
  EXPECT_NEAR(moments_of(values).mean, 0, 0.003);
  EXPECT_NEAR(moments_of(values).stddev, 0.8796 * 0.25, 0.003);
  EXPECT_NEAR(share_above(values, 0.25f), (0.158655 - 0.022750) / 0.9545, 0.005);
}

TEST(ConfigCases, Case18_RowIdCountsTheTablesOwnRows) {
  const Initializer row_id = Initializer::row_id(5);
  EXPECT_EQ(table(row_id, 3, 2), (std::vector<float>{5, 5, 6, 6, 7, 7}));
  EXPECT_EQ(filled(row_id, {.first_row = 2, .rows = 1, .vocabulary_size = 3, .dim = 2}),
            (std::vector<float>{7, 7}));
}

TEST(Initializer, ValuesAreThoseOfTheWholeTable) {
  const Initializer values = Initializer::values({1, 2, 3, 4, 5, 6});
  EXPECT_EQ(table(values, 3, 2), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(filled(values, {.first_row = 1, .rows = 1, .vocabulary_size = 3, .dim = 2}),
            (std::vector<float>{3, 4}));
}

TEST(Initializer, ValuesFitOneSizeOfTable) {
  const Initializer values = Initializer::values({1, 2, 3, 4, 5, 6});
  values.check("ads", 3, 2);
  values.check("ads", 2, 3);
  EXPECT_EQ(refusal<ValueError>([&] { values.check("ads", 3, 3); }),
            "table 'ads': initializer must have vocabulary_size * dim values, 3 * 3, got 6");
  EXPECT_NE(refusal<ValueError>([&] { values.check("ads", std::int64_t{1} << 62, 4); }), "");
  Initializer::zeros().check("ads", std::int64_t{1} << 62, 4096);
}

TEST(Initializer, FunctionGetsTheRangeAndMayThrow) {
  const Initializer rows = Initializer::function([](const RowRange& range, std::span<float> out) {
    std::ranges::fill(out, static_cast<float>(range.first_row * 100 + range.vocabulary_size));
  });
  EXPECT_EQ(filled(rows, {.first_row = 2, .rows = 1, .vocabulary_size = 9, .dim = 2}),
            (std::vector<float>{209, 209}));
  const Initializer broken =
      Initializer::function([](const RowRange&, std::span<float>) { throw KeyError("mine"); });
  EXPECT_THROW(table(broken, 1, 1), KeyError);
}

TEST(Initializer, RefusesParametersOutsideTheirRange) {
  EXPECT_EQ(refusal<ValueError>([] { Initializer::uniform(1, 1); }),
            "uniform initializer: low must be below high, got 1 and 1");
  EXPECT_EQ(refusal<ValueError>([] { Initializer::uniform(0, kInfinity); }),
            "uniform initializer: high must be finite, got inf");
  EXPECT_EQ(refusal<ValueError>([] { Initializer::uniform(kNan, 1); }),
            "uniform initializer: low must be finite, got nan");
  EXPECT_EQ(refusal<ValueError>([] { Initializer::normal(0, -1); }),
            "normal initializer: stddev must be finite and >= 0, got -1");
  EXPECT_EQ(refusal<ValueError>([] { Initializer::truncated_normal(-kInfinity, 1); }),
            "truncated_normal initializer: mean must be finite, got -inf");
  EXPECT_EQ(refusal<ValueError>([] { Initializer::normal(0, kNan); }),
            "normal initializer: stddev must be finite and >= 0, got nan");
}

TEST(ConfigCases, Case04_AnInitializerThatCannotBeCalledIsRefused) {
  EXPECT_EQ(refusal<ValueError>([] { Initializer::function(nullptr); }),
            "function initializer: the function must be callable, got none");
}

TEST(Initializer, PrintsItsKindAndParameters) {
  EXPECT_EQ(Initializer::zeros().to_string(), "constant(0)");
  EXPECT_EQ(Initializer::constant(0.1f).to_string(), "constant(0.1)");
  EXPECT_EQ(Initializer::uniform(-0.5f, 0.5f).to_string(), "uniform(low=-0.5, high=0.5)");
  EXPECT_EQ(Initializer::normal(1, 2, 7).to_string(), "normal(mean=1, stddev=2, seed=7)");
  EXPECT_EQ(Initializer::row_id(5).to_string(), "row_id(offset=5)");
  EXPECT_EQ(Initializer::values({1, 2}).to_string(), "values(2)");
}

TEST(Initializer, KnowsTheDefaultByItsParameters) {
  EXPECT_TRUE(Initializer::default_for(10).is_default_for(10));
  EXPECT_TRUE(Initializer::truncated_normal(0, 0.31622777f).is_default_for(10));
  EXPECT_FALSE(Initializer::truncated_normal(0, 0.3163f).is_default_for(10));
  EXPECT_FALSE(Initializer::truncated_normal(1e-9f, 0.25f).is_default_for(16));
  EXPECT_FALSE(Initializer::normal(0, 0.25f).is_default_for(16));
  EXPECT_FALSE(Initializer::zeros().is_default_for(16));
}

TEST(Initializer, FillsWithDenormalsWhereTheThreadFlushesThem) {
  const auto fill = [] { return table(Initializer::uniform(1e-39f, 2e-39f), 3, 4); };
  EXPECT_EQ(flushing_to_zero(fill), fill());
  EXPECT_GT(fill()[0], 0);
}

TEST(Initializer, RefusesARangeThatIsNotTheOutputs) {
  const auto refused = [](const Initializer& initializer, const RowRange& range) {
    std::vector<float> out(4);
    return refusal<ValueError>([&] { initializer.fill(range, 0, out); });
  };
  const RowRange range = {.first_row = 1, .rows = 2, .vocabulary_size = 3, .dim = 2};
  const Initializer values = Initializer::values({1, 2, 3, 4, 5, 6});
  EXPECT_EQ(refused(values, range), "");
  RowRange longer = range;
  longer.rows = 3;
  EXPECT_EQ(refused(Initializer::zeros(), longer),
            "initializer: out must have rows * dim floats, 3 * 2, got 4");
  RowRange later = range;
  later.first_row = 2;
  EXPECT_EQ(refused(values, later), "values initializer: rows must be of the table, got 2 from 2");
  RowRange larger = range;
  larger.vocabulary_size = 4;
  EXPECT_EQ(refused(values, larger),
            "values initializer: vocabulary_size * dim must be 6, got 4 * 2");
}

}  // namespace
}  // namespace embertable
