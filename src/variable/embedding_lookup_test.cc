#include "embertable/variables/embedding_lookup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "embertable/errors.h"
#include "rows/placement.h"
#include "testing/executor.h"
#include "testing/refusal.h"
#include "testing/source_path.h"
#include "testing/tensors.h"

namespace embertable {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

/// Rows [1, 2] to [9, 10] in three components.
ShardedVariable five_rows() {
  return sharded(floats({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, {5, 2}), {2, 2, 1});
}

/// Sparse ids at rows of a batch, owning their arrays.
struct Sparse {
  Int64s indices, values;
  Shape shape;
  operator FeatureIds() const { return SparseIds{indices, values, shape}; }  // NOLINT
};

TEST(ShardedCases, Case58_RowsOfIdsOfThreeComponents) {
  EXPECT_EQ(floats_of(embedding_lookup(five_rows(), ints({0, 3, 4}))), (Floats{1, 2, 7, 8, 9, 10}));
}

TEST(ShardedCases, Case59_MeansOfSparseIds) {
  const Sparse ids{{0, 0, 0, 1, 1, 0, 2, 0}, {0, 3, 4, 1}, {3, 2}};
  const Tensor means = embedding_lookup_sparse(five_rows(), ids);
  EXPECT_EQ(means.shape(), Shape({3, 2}));
  EXPECT_EQ(floats_of(means), (Floats{4, 5, 9, 10, 3, 4}));
}

TEST(ShardedCases, Case60_SafeMeansLeaveOutIdsAndWeightsBelowZero) {
  const Sparse ids{{0, 0, 0, 1, 1, 0, 2, 0}, {0, -1, 4, 1}, {3, 2}};
  const Floats weights = {1, 1, -1, 1};
  EXPECT_EQ(floats_of(safe_embedding_lookup_sparse(five_rows(), ids, SparseWeights{weights})),
            (Floats{1, 2, 0, 0, 3, 4}));
}

/// Whole numbers below 2^53: every sum is exact.
TEST(SparseLookups, RowsOfAnyWidthAreSummedWithoutAKernel) {
  for (const std::int64_t width : {1, 255, 256, 257, 513}) {
    std::vector<double> numbers(3 * width);
    std::iota(numbers.begin(), numbers.end(), 0.0);
    const Tensor table = Tensor::of<double>(numbers, {3, width});
    const Sparse ids{{0, 0, 0, 1, 2, 0}, {2, 1, 0}, {3, 2}};
    const Tensor sums = embedding_lookup_sparse(table, ids, {}, {{}, Combiner::kSum});
    std::vector<double> expected;
    for (std::int64_t c = 0; c < width; ++c)
      expected.push_back(static_cast<double>(3 * width + 2 * c));
    for (std::int64_t c = 0; c < width; ++c) expected.push_back(0);
    for (std::int64_t c = 0; c < width; ++c) expected.push_back(static_cast<double>(c));
    EXPECT_TRUE(identical(sums, Tensor::of<double>(expected, {3, width}))) << width;
  }
}

/// The table's rows as a list of parts.
std::vector<Tensor> parts_of(const Tensor& table, std::int32_t parts, Sharding strategy) {
  const Placement placement(table.shape()[0], parts, strategy);
  const std::int64_t width = table.size() / table.shape()[0];
  const Floats all = floats_of(table);
  std::vector<Tensor> result;
  for (std::int32_t p = 0; p < parts; ++p) {
    Floats rows;
    for (std::int64_t local = 0; local < placement.shard_rows(p); ++local) {
      const auto from = all.begin() + placement.global_row(p, local) * width;
      rows.insert(rows.end(), from, from + width);
    }
    result.push_back(floats(rows, table.shape().with_leading(placement.shard_rows(p))));
  }
  return result;
}

template <class Int>
Tensor random_ids(std::mt19937& dice, const Shape& shape, std::int64_t rows) {
  Tensor ids(dtype_of<Int>(), shape);
  for (Int& id : ids.mutable_values<Int>())
    id = static_cast<Int>(std::uniform_int_distribution<std::int64_t>(0, rows - 1)(dice));
  return ids;
}

TEST(ShardedCases, Case62_PartsGiveWhatTheWholeGives) {
  std::mt19937 dice(test_seed(62));
  const Tensor table = counting({13, 3});
  for (const Sharding strategy : {Sharding::kDiv, Sharding::kMod}) {
    const LookupParams parts = parts_of(table, 5, strategy);
    for (const Shape& shape : {Shape::scalar(), Shape({7}), Shape({2, 5}), Shape({2, 3, 4})}) {
      for (int i = 0; i < 50; ++i) {
        const Tensor ids = i % 2 == 0 ? random_ids<std::int32_t>(dice, shape, 13)
                                      : random_ids<std::int64_t>(dice, shape, 13);
        const Tensor found = embedding_lookup(parts, ids, {.partition_strategy = strategy});
        ASSERT_EQ(found.shape(), shape.append(3));
        ASSERT_TRUE(identical(found, embedding_lookup(table, ids)));
      }
    }
  }
}

TEST(ShardedCases, Case63_RowsBeyondTheNormAreScaledToIt) {
  const auto limited = [](const Tensor& table, const Int64s& ids, double max_norm) {
    return floats_of(embedding_lookup(table, ints(ids), {.max_norm = max_norm}));
  };
  EXPECT_EQ(limited(floats({2}, {1, 1}), {0}, 1), (Floats{1}));
  const Floats two = limited(floats({2, 4, 3, 1}, {2, 2}), {0, 1}, 2);
  const Floats wanted = {0.894427f, 1.788854f, 1.897367f, 0.632456f};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(two[i], wanted[i], 1e-6);
  const Tensor table = counting({13, 3});
  const Tensor ids = ints({12, 0, 5, 5, 1});
  const EmbeddingLookupOptions options = {.max_norm = 3.5};
  EXPECT_TRUE(identical(embedding_lookup(sharded(table, {4, 9}), ids, options),
                        embedding_lookup(table, ids, options)));
  EXPECT_EQ(limited(floats({0, 0}, {1, 2}), {0}, 1), (Floats{0, 0}));
}

TEST(EmbeddingLookup, TakesAnyNormThatADoubleHolds) {
  const Tensor table = floats({0, -0.0f, 4, 4, 3e38f, 0}, {3, 2});
  const Floats whole = floats_of(table);
  const auto limited = [&](double most) {
    return floats_of(embedding_lookup(table, ints({0, 1, 2}), {.max_norm = most}));
  };
  for (const double most : {3.1e38, 1e39, 1e300}) EXPECT_EQ(limited(most), whole) << most;
  EXPECT_EQ(limited(1e38), (Floats{0, 0, 4, 4, 1e38f, 0}));
  for (const double least : {1e-50, 5e-324}) EXPECT_EQ(limited(least), Floats(6, 0)) << least;
  const Tensor tiny = floats({1e-31f, 1e-25f, 1e-20f, 3e-38f}, {4, 1});
  EXPECT_EQ(floats_of(embedding_lookup(tiny, ints({0, 3}), {.max_norm = 1e-30})),
            (Floats{1e-31f, 3e-38f}));
  EXPECT_EQ(floats_of(embedding_lookup(tiny, ints({1, 2}), {.max_norm = 1e-26})),
            (Floats{1e-26f, 1e-26f}));
  const double greatest = std::numeric_limits<double>::max();
  const Tensor doubles = Tensor::of<double>({4, 1e300, 0}, {3, 1});
  EXPECT_EQ(elements<double>(embedding_lookup(doubles, ints({0, 1, 2}), {.max_norm = greatest})),
            (std::vector<double>{4, 1e300, 0}));
  EXPECT_EQ(elements<double>(embedding_lookup(doubles, ints({1}), {.max_norm = 1e200})),
            (std::vector<double>{1e200}));
  const Tensor halves = Tensor::of<Float16>({Float16(4), Float16(0)}, {2, 1});
  EXPECT_TRUE(identical(embedding_lookup(halves, ints({0, 1}), {.max_norm = 1e39}), halves));
  const Sparse ids{{0, 0, 0, 1}, {1, 0}, {1, 2}};
  for (const double most : {1e38, 1e39})
    EXPECT_EQ(
        floats_of(embedding_lookup_sparse(table, ids, {}, {{.max_norm = most}, Combiner::kMean})),
        (Floats{2, 2}));
}

TEST(EmbeddingLookup, ARowWithANaNOrAnInfinityKeepsNoOtherNumber) {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  const Tensor table = floats({nan, 1, infinity, 1}, {2, 2});
  for (const double most : {1.0, 1e39}) {
    const Floats found = floats_of(embedding_lookup(table, ints({0, 1}), {.max_norm = most}));
    EXPECT_TRUE(std::isnan(found[0]) && std::isnan(found[1]) && std::isnan(found[2])) << most;
    EXPECT_EQ(found[3], 0) << most;
  }
}

TEST(EmbeddingLookup, TakesTheNormOverAllAxesOfARow) {
  const Tensor table = floats({3, 0, 0, 4}, {1, 2, 2});
  EXPECT_EQ(floats_of(embedding_lookup(table, ints({0}), {.max_norm = 2.5})),
            (Floats{1.5f, 0, 0, 2}));
}

TEST(ShardedCases, Case64_RaggedIdsKeepTheirRowsAndTheNorm) {
  const RaggedTensor found = embedding_lookup(
      floats({2}, {1, 1}), RaggedTensor{{{0, 2, 3}}, ints({0, 0, 0})}, {.max_norm = 1});
  EXPECT_EQ(found.row_splits, (std::vector<Int64s>{{0, 2, 3}}));
  EXPECT_EQ(found.values.shape(), Shape({3, 1}));
  EXPECT_EQ(floats_of(found.values), (Floats{1, 1, 1}));
  const RaggedTensor mod = embedding_lookup(
      std::vector<Tensor>{floats({0, 2}, {2, 1}), floats({1}, {1, 1})},
      RaggedTensor{{{0, 2}, {0, 1, 3}}, ints({2, 1, 0})}, {.partition_strategy = Sharding::kMod});
  EXPECT_EQ(floats_of(mod.values), (Floats{2, 1, 0}));
}

TEST(EmbeddingLookup, RefusesRaggedIdsWhoseSplitsDoNotLeadToThem) {
  const Tensor table = floats({2}, {1, 1});
  const auto why = [&](const std::vector<Int64s>& splits) {
    return refusal<ValueError>([&] {
      embedding_lookup(table, RaggedTensor{splits, ints({0, 0})});
    });
  };
  EXPECT_EQ(why({{0, 1}}), "lookup: row_splits[0] must run from 0 to 2 and never fall");
  EXPECT_EQ(why({{0, 3, 2}}), "lookup: row_splits[0] must run from 0 to 2 and never fall");
  EXPECT_EQ(why({{0, 1}, {0, 1, 2}}), "lookup: row_splits[0] must run from 0 to 2 and never fall");
  EXPECT_EQ(why({}), "lookup: ragged ids must have row_splits and values of rank >= 1");
  EXPECT_EQ(refusal<ValueError>([&] {
              embedding_lookup(table, RaggedTensor{{{0, 1}}, floats({0}, {1})});
            }),
            "lookup: ids must be int32 or int64, got float32");
}

TEST(ShardedCases, Case65_NoParamsAndUnknownStrategies) {
  const LookupParams none = std::vector<Tensor>();
  EXPECT_THAT(refusal<ValueError>([&] { embedding_lookup(none, ints({0})); }),
              HasSubstr("Need at least one param"));
  EXPECT_THAT(refusal<ValueError>([&] {
                safe_embedding_lookup_sparse(none, Sparse{{}, {}, {1, 1}});
              }),
              HasSubstr("Missing embedding_weights"));
  EXPECT_EQ(parse_partition_strategy("div"), Sharding::kDiv);
  EXPECT_EQ(parse_partition_strategy("mod"), Sharding::kMod);
  EXPECT_EQ(refusal<ValueError>([] { parse_partition_strategy("rows"); }),
            "lookup: Unrecognized partition strategy: must be 'div' or 'mod', got 'rows'");
}

/// e_i = [10 i, 10 i + 1, 10 i + 2].
Tensor tens() { return floats({0, 1, 2, 10, 11, 12, 20, 21, 22, 30, 31, 32}, {4, 3}); }

/// Ids r0 0, 1, -1; r1 -1; r2 none; r3 2; r4 0, 1.
const Sparse kFiveRows{{0, 0, 0, 1, 0, 2, 1, 0, 3, 0, 4, 0, 4, 1}, {0, 1, -1, -1, 2, 0, 1}, {5, 4}};
const Floats kFiveWeights = {1, 2, 1, 1, 3, 0, -0.5f};

void check_case_66(const LookupParams& table) {
  const auto look_up = [&](const FeatureWeights& weights, std::optional<std::int64_t> by_default) {
    return floats_of(
        safe_embedding_lookup_sparse(table, kFiveRows, weights, {.default_id = by_default}));
  };
  const float third = 20.0f / 3;
  EXPECT_EQ(look_up(SparseWeights{kFiveWeights}, {}),
            (Floats{third, 23.0f / 3, 26.0f / 3, 0, 0, 0, 0, 0, 0, 20, 21, 22, 0, 0, 0}));
  EXPECT_EQ(look_up(SparseWeights{kFiveWeights}, 3),
            (Floats{third, 23.0f / 3, 26.0f / 3, 30, 31, 32, 30, 31, 32, 20, 21, 22, 30, 31, 32}));
  EXPECT_EQ(look_up({}, {}), (Floats{5, 6, 7, 0, 0, 0, 0, 0, 0, 20, 21, 22, 5, 6, 7}));
  EXPECT_EQ(look_up({}, 0), (Floats{5, 6, 7, 0, 1, 2, 0, 1, 2, 20, 21, 22, 5, 6, 7}));
}

TEST(ShardedCases, Case66_SafeMeansOfFiveRows) {
  check_case_66(tens());
  check_case_66(sharded(tens(), {2, 1, 1}));
}

TEST(ShardedCases, Case66_LeadingAxesStay) {
  const Sparse ids{{0, 0, 0, 0, 0, 1, 0, 2, 3, 1, 1, 0, 1, 2, 2}, {0, 1, 2, -1, 3}, {2, 3, 4}};
  const Tensor sums =
      safe_embedding_lookup_sparse(sharded(tens(), {2, 1, 1}), ids, {}, {{{}, Combiner::kSum}, {}});
  EXPECT_EQ(sums.shape(), Shape({2, 3, 3}));
  EXPECT_EQ(floats_of(sums),
            (Floats{10, 12, 14, 0, 0, 0, 20, 21, 22, 0, 0, 0, 0, 0, 0, 30, 31, 32}));
}

TEST(ShardedCases, Case67_RowsWithoutIdsAreZerosForEveryCombiner) {
  const Sparse ids{{1, 0, 3, 0}, {1, 2}, {4, 1}};
  for (const Combiner combiner : {Combiner::kSum, Combiner::kMean, Combiner::kSqrtN})
    for (const FeatureWeights& weights :
         {FeatureWeights(), FeatureWeights(SparseWeights{std::span(kFiveWeights).first(2)})}) {
      const bool weighted = !std::holds_alternative<std::monostate>(weights);
      const float w = weighted && combiner == Combiner::kSum ? 2 : 1;
      EXPECT_EQ(floats_of(embedding_lookup_sparse(tens(), ids, weights, {{}, combiner})),
                (Floats{0, 0, 0, 10, 11, 12, 0, 0, 0, 20 * w, 21 * w, 22 * w}));
    }
}

TEST(ShardedCases, Case68_EveryIdOfAContainerOfAnySizes) {
  const ShardedVariable variable = sharded(counting({4, 2}), {1, 2, 1});
  for (std::int64_t id = 0; id < 4; ++id)
    for (const Sharding strategy : {Sharding::kDiv, Sharding::kMod})
      EXPECT_TRUE(identical(
          embedding_lookup(variable, Tensor::scalar(id), {.partition_strategy = strategy}),
          variable[id]));
}

TEST(EmbeddingLookup, SaysWhichIdHasNoRow) {
  EXPECT_EQ(
      refusal<IndexError>([] {
        embedding_lookup(five_rows(), ints({0, 5}));
      }),
      "sharded variable 'ShardedVariable': lookup: ids[1] = 5 is out of bounds for axis 0 with "
      "size 5, behind component 2 ('Variable') of rows [4, 5)");
  EXPECT_EQ(refusal<IndexError>([] { embedding_lookup(five_rows(), ints({-1})); }),
            "sharded variable 'ShardedVariable': lookup: ids[0] = -1 is out of bounds for axis 0 "
            "with size 5, before component 0 ('Variable') of rows [0, 2)");
  EXPECT_EQ(refusal<IndexError>([] {
              embedding_lookup(std::vector<Tensor>{counting({2}), counting({1})}, ints({3}));
            }),
            "lookup: ids[0] = 3 is out of bounds for axis 0 with size 3, behind part 1 of rows "
            "[2, 3)");
  const ShardedVariable named(
      {Variable(counting({2}), "w/part_0"), Variable(counting({1}), "w/part_1")}, {.name = "w"});
  EXPECT_EQ(refusal<IndexError>([&] {
              embedding_lookup(named, ints({2, 7}));
            }),
            "sharded variable 'w': lookup: ids[1] = 7 is out of bounds for axis 0 with size 3, "
            "behind component 1 ('w/part_1') of rows [2, 3)");
  const Sparse ids{{1, 0, 0, 0}, {1, 9}, {2, 1}};
  EXPECT_THAT(refusal<IndexError>([&] { embedding_lookup_sparse(five_rows(), ids); }),
              HasSubstr("ids[1] = 9 is out of bounds for axis 0 with size 5"));
  EXPECT_THAT(
      refusal<IndexError>([&] {
        safe_embedding_lookup_sparse(five_rows(), Sparse{{}, {}, {2, 1}}, {}, {.default_id = 5});
      }),
      HasSubstr("default_id = 5 is out of bounds for axis 0 with size 5"));
  // Parts of 3 and 1 rows hold 0, 2, 4 and 1.
  const std::vector<Tensor> uneven = {counting({3}), counting({1})};
  EXPECT_EQ(
      floats_of(embedding_lookup(uneven, ints({4, 1}), {.partition_strategy = Sharding::kMod})),
      (Floats{2, 0}));
  EXPECT_THAT(
      refusal<IndexError>(
          [&] { embedding_lookup(uneven, ints({3}), {.partition_strategy = Sharding::kMod}); }),
      HasSubstr("ids[0] = 3 is row 1 of part 1 by 'mod', which is out of bounds for axis 0 with "
                "size 1"));
}

TEST(EmbeddingLookup, RefusesPartsThatAreNotOneTable) {
  const auto why = [](const std::vector<Tensor>& parts) {
    return refusal<ValueError>([&] { embedding_lookup(parts, ints({0})); });
  };
  EXPECT_EQ(why({counting({2, 3}), ints({1})}),
            "lookup: part 1 must be float32 as part 0, got int64");
  EXPECT_THAT(why({counting({2, 3}), counting({2, 4})}), HasSubstr("part 1 must have rows like"));
  EXPECT_EQ(why({Tensor::scalar(1.0f)}), "lookup: part 0 must have rank >= 1, got a scalar");
  EXPECT_EQ(refusal<TypeError>([] { embedding_lookup(std::vector<Variable>(1), ints({0})); }),
            "lookup: a part must be a variable, got none");
}

TEST(EmbeddingLookup, RefusesNormsAndMeansOfIntegers) {
  const auto why = [](const Tensor& table, double norm) {
    return refusal<ValueError>([&] { embedding_lookup(table, ints({0}), {.max_norm = norm}); });
  };
  EXPECT_THAT(why(counting({1}), 0), HasSubstr("max_norm must be finite and > 0"));
  EXPECT_THAT(why(counting({1}), std::numeric_limits<double>::infinity()), HasSubstr("finite"));
  EXPECT_EQ(why(ints({1}), 1),
            "lookup: max_norm needs a table of floating-point numbers, got int64");
  EXPECT_EQ(refusal<ValueError>([] {
              embedding_lookup_sparse(ints({1}), Sparse{{0, 0}, {0}, {1, 1}});
            }),
            "lookup: sums need a table of floating-point numbers, got int64");
}

TEST(EmbeddingLookup, RefusesIdsAndWeightsThatDoNotFit) {
  const Int64s three = {0, 1, 2};
  const Floats weights = {1, 1};
  const Sparse ids{{0, 0, 0, 1}, {0, 1}, {1, 2}};
  const auto kind = [&](const FeatureIds& given, const FeatureWeights& of) {
    return refusal<TypeError>([&] { embedding_lookup_sparse(tens(), given, of); });
  };
  EXPECT_EQ(kind(DenseIds{three, {}}, {}), "lookup: ids must be sparse or ragged, got dense ids");
  EXPECT_EQ(kind(ids, RaggedWeights{weights}),
            "lookup: weights must be of the kind of the ids, sparse");
  EXPECT_EQ(refusal<ValueError>([&] {
              embedding_lookup_sparse(tens(), ids, SparseWeights{std::span(weights).first(1)});
            }),
            "lookup: weights must be as many as the ids, 2, got 1");
  const auto data = [&](const FeatureIds& given) {
    return refusal<DataError>([&] { embedding_lookup_sparse(tens(), given); });
  };
  EXPECT_EQ(data(Sparse{{0, 2}, {0}, {1, 2}}),
            "lookup, position 0: indices must lie within dense_shape (1, 2), got 2 on axis 1");
  EXPECT_THAT(refusal<ValueError>([&] {
                safe_embedding_lookup_sparse(
                    tens(), Sparse{{}, {}, {std::int64_t{1} << 62, std::int64_t{1} << 62, 2}});
              }),
              HasSubstr("fewer than 2^40 rows"));
  constexpr std::int64_t kLarge = std::int64_t{1} << 40;
  EXPECT_EQ(refusal<DataError>([&] {
              safe_embedding_lookup_sparse(
                  tens(), Sparse{{kLarge - 1, kLarge - 1, 0, 2}, {0}, {kLarge, kLarge, 0, 3}});
            }),
            "lookup, position 0: indices must lie within dense_shape (1099511627776, "
            "1099511627776, 0, 3), got 0 on axis 2");
  EXPECT_EQ(data(RaggedIds{Int64s{0, 2, 1, 3}, three}),
            "lookup, sample 1, position 2: row_splits must not fall, got 1 after 2");
  EXPECT_EQ(data(RaggedIds{Int64s{1, 3}, three}),
            "lookup, position 0: row_splits must start at 0, got 1");
  EXPECT_EQ(data(RaggedIds{Int64s{0, 2}, three}),
            "lookup, position 1: row_splits must end at the number of ids, 3, got 2");
}

TEST(EmbeddingLookup, SumsRaggedIdsAndThoseInAnyOrder) {
  const Int64s splits = {0, 2, 2, 3}, values = {1, 2, 3};
  const Floats weights = {2, 1, 3};
  EXPECT_EQ(floats_of(embedding_lookup_sparse(tens(), RaggedIds{splits, values},
                                              RaggedWeights{weights}, {{}, Combiner::kSum})),
            (Floats{40, 43, 46, 0, 0, 0, 90, 93, 96}));
  const Sparse swapped{{2, 0, 0, 1, 0, 0}, {3, 2, 1}, {3, 2}};
  const Floats in_order = {3, 1, 2};
  EXPECT_EQ(floats_of(embedding_lookup_sparse(tens(), swapped, SparseWeights{in_order},
                                              {{}, Combiner::kSum})),
            (Floats{40, 43, 46, 0, 0, 0, 90, 93, 96}));
}

TEST(EmbeddingLookup, LimitsRowsBeforeTheyAreWeighted) {
  const Sparse ids{{0, 0, 0, 1}, {0, 1}, {1, 2}};
  const Floats weights = {2, 1};
  // [3, 4] of norm 5 counts as [0.6, 0.8], [0.5, 0] as it is.
  const Tensor sums =
      embedding_lookup_sparse(floats({3, 4, 0.5f, 0}, {2, 2}), ids, SparseWeights{weights},
                              {{.max_norm = 1.0}, Combiner::kSum});
  EXPECT_FLOAT_EQ(floats_of(sums)[0], 1.7f);
  EXPECT_FLOAT_EQ(floats_of(sums)[1], 1.6f);
}

TEST(EmbeddingLookup, SumsEveryFloatingDtypeAndRoundsHalvesOnce) {
  const Sparse ids{{0, 0, 0, 1, 0, 2}, {0, 1, 1}, {1, 3}};
  const std::vector<double> thirds = {1.0 / 3, 1, 1};
  const Tensor doubles = Tensor::of<double>({3, 1}, {2, 1});
  EXPECT_EQ(elements<double>(
                embedding_lookup_sparse(doubles, ids, SparseWeights{thirds}, {{}, Combiner::kSum})),
            (std::vector<double>{3.0 * (1.0 / 3) + 1 + 1}));
  // 256 + 1 + 1 = 258; with a rounding to 8 bits after each step it would be 256.
  const Tensor halves = Tensor::of<BFloat16>({BFloat16(256), BFloat16(1)}, {2, 1});
  EXPECT_EQ(elements<BFloat16>(embedding_lookup_sparse(halves, ids, {}, {{}, Combiner::kSum})),
            (std::vector<BFloat16>{BFloat16(258)}));
  const Tensor float16s = Tensor::of<Float16>({Float16(2048), Float16(1)}, {2, 1});
  EXPECT_EQ(elements<Float16>(embedding_lookup_sparse(float16s, ids, {}, {{}, Combiner::kSum})),
            (std::vector<Float16>{Float16(2050)}));
}

TEST(EmbeddingLookup, LooksUpEveryDtypeInRowsThatStandApart) {
  for (const DType dtype : kDTypes) {
    Tensor table(dtype, {6, 3});
    for (std::size_t i = 0; i < table.mutable_bytes().size(); ++i)
      table.mutable_bytes()[i] = static_cast<std::byte>(dtype == DType::kBool ? i % 2 : i);
    const Tensor every_second = index(table, {Slice{0, 6, 2}});
    const Tensor found = embedding_lookup(every_second, ints({2, 0}));
    EXPECT_TRUE(identical(index(found, {0}), index(table, {4}))) << to_string(dtype);
    EXPECT_TRUE(identical(index(found, {1}), index(table, {0}))) << to_string(dtype);
    const Tensor turned = index(table, {Slice{{}, {}, -1}});
    EXPECT_TRUE(identical(embedding_lookup(turned, ints({0})), index(table, {Slice{5, 6}})));
    const Tensor column = index(table, {Slice{}, Slice{1, 3}});
    EXPECT_TRUE(identical(embedding_lookup(column, ints({5})), index(column, {Slice{5, 6}})));
  }
}

TEST(EmbeddingLookup, GivesTheSameBitsOnAnyNumberOfWorkers) {
  std::mt19937 dice(test_seed(7));
  const Tensor table = counting({1000, 40});
  const ShardedVariable variable = sharded(table, {300, 0, 450, 250});
  const Tensor ids = random_ids<std::int64_t>(dice, {20000}, 1000);
  Int64s splits = {0};
  while (splits.back() < 20000) splits.push_back(splits.back() + 1 + splits.back() % 3);
  splits.back() = 20000;
  const auto values = ids.values<std::int64_t>();
  SparseLookupOptions alone{{.max_norm = 50}, Combiner::kSqrtN}, together = alone;
  together.executor = make_thread_pool(4);
  EXPECT_TRUE(
      identical(embedding_lookup(variable, ids, alone), embedding_lookup(variable, ids, together)));
  EXPECT_TRUE(identical(embedding_lookup_sparse(variable, RaggedIds{splits, values}, {}, alone),
                        embedding_lookup_sparse(table, RaggedIds{splits, values}, {}, together)));
}

TEST(EmbeddingLookup, TakesNoIdsAndRowsWithoutElements) {
  EXPECT_EQ(embedding_lookup(five_rows(), Tensor(DType::kInt64, {0, 3})).shape(), Shape({0, 3, 2}));
  EXPECT_EQ(embedding_lookup(Tensor(DType::kFloat32, {4, 0}), ints({3})).shape(), Shape({1, 0}));
  EXPECT_THAT(refusal<IndexError>([] {
                embedding_lookup(Tensor(DType::kFloat32, {0, 2}), ints({0}));
              }),
              HasSubstr("for axis 0 with size 0"));
  EXPECT_EQ(embedding_lookup_sparse(five_rows(), Sparse{{}, {}, {0, 3}}).shape(), Shape({0, 2}));
}

template <class T>
Tensor tensor_of(const Json& data, const Shape& shape) {
  Tensor tensor(dtype_of<T>(), shape);
  std::size_t i = 0;
  for (T& x : tensor.mutable_values<T>()) x = data[i++].get<T>();
  return tensor;
}

Tensor tensor_of(const Json& data, const std::string& dtype, const Int64s& dims) {
  const Shape shape{std::span<const std::int64_t>(dims)};
  if (dtype == "float32") return tensor_of<float>(data, shape);
  if (dtype == "float64") return tensor_of<double>(data, shape);
  if (dtype == "int32") return tensor_of<std::int32_t>(data, shape);
  return tensor_of<std::int64_t>(data, shape);
}

// tests/golden/README.md.
TEST(EmbeddingLookup, AgreesWithTensorFlow) {
  std::ifstream file(source_path("tests/golden/sharded_ops.json"));
  const Json golden = Json::parse(file);
  int cases = 0;
  for (const Json& one : golden.at("cases")) {
    if (one.at("op") != "embedding_lookup") continue;
    ++cases;
    Int64s sizes = one.at("sizes"), dims = {0};
    for (const std::int64_t rows : sizes) dims[0] += rows;
    for (const Json& dim : one.at("tail")) dims.push_back(dim);
    const std::string dtype = one.at("dtype");
    const Json& at = one.at("indices");
    const Tensor ids = tensor_of(at.at("data"), at.at("dtype"), at.at("shape"));
    EmbeddingLookupOptions options;
    if (one.contains("max_norm")) options.max_norm = one.at("max_norm").get<double>();
    const Json& wanted = one.contains("correct") ? one.at("correct") : one.at("tf");
    const ShardedVariable variable = sharded(tensor_of(one.at("table"), dtype, dims), sizes);
    if (wanted.contains("category")) {
      EXPECT_THROW(embedding_lookup(variable, ids, options), IndexError) << one;
      continue;
    }
    const Tensor found = embedding_lookup(variable, ids, options);
    const Tensor right = tensor_of(wanted.at("data"), dtype, wanted.at("shape"));
    ASSERT_EQ(found.shape(), right.shape()) << one;
    if (dtype == "float32")
      EXPECT_THAT(floats_of(found),
                  testing::Pointwise(testing::FloatNear(1e-5f), floats_of(right)));
    else
      EXPECT_TRUE(identical(found, right)) << one;
  }
  EXPECT_EQ(cases, 50);
}

}  // namespace
}  // namespace embertable
