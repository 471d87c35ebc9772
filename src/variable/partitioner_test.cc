#include "embertable/variables/partitioner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "embertable/errors.h"
#include "rows/placement.h"
#include "testing/refusal.h"
#include "testing/source_path.h"

namespace embertable {
namespace {

using Json = nlohmann::json;
using Counts = std::vector<std::int64_t>;
using Fixed = FixedShardsPartitioner;
using Min = MinSizePartitioner;
using Max = MaxSizePartitioner;

Counts parts(const Partitioner& partitioner, const Counts& shape, int axis = 0,
             ElementBytes element = 4) {
  return partitioner(Shape(std::span<const std::int64_t>(shape)), element, axis);
}

TEST(ShardedCases, Case01_FixedShardsAreAsManyAsAskedFor) {
  EXPECT_EQ(parts(Fixed(2), {10, 3}), (Counts{2, 1}));
  EXPECT_EQ(parts(Fixed(8), {5, 3}), (Counts{5, 1}));
  EXPECT_EQ(parts(Fixed(3), {10, 3}, 1), (Counts{1, 3}));
  EXPECT_EQ(parts(Fixed(3), {10, 3}, -1), (Counts{1, 3}));
}

TEST(ShardedCases, Case01_MinSizeRoundsUp) {
  EXPECT_EQ(parts(Min(4, 2), {6, 1}), (Counts{2, 1}));
  EXPECT_EQ(parts(Min(4, 10), {6, 1}), (Counts{6, 1}));
  EXPECT_EQ(parts(Min(), {6, 1}), (Counts{1, 1}));
  EXPECT_EQ(parts(Min(2048, 100), {2048}), (Counts{4}));
  EXPECT_EQ(parts(Min(262144, 100), {2048, 1024}), (Counts{32, 1}));
  EXPECT_EQ(parts(Min(262144, 16), {2048, 1024}), (Counts{16, 1}));
  EXPECT_EQ(parts(Min(262144, 1), {2048, 1024}), (Counts{1, 1}));
  EXPECT_EQ(parts(Min(131072, 100), {2048, 1024}), (Counts{64, 1}));
  EXPECT_EQ(parts(Min(524288, 100), {2048, 1024}), (Counts{16, 1}));
  EXPECT_EQ(parts(Min(262144, 100), {64, 1024, 1, 3}, 1), (Counts{1, 3, 1, 1}));
  EXPECT_EQ(parts(Min(262144, 100), {64, 1024, 1, 3}, 3), (Counts{1, 1, 1, 3}));
  EXPECT_EQ(parts(Min(262144, 100), {16, 128, 1024}), (Counts{16, 1, 1}));
  EXPECT_EQ(parts(Min(262144, 100), {4, 512, 1024}), (Counts{4, 1, 1}));
  EXPECT_EQ(parts(Min(119, 10), {10, 3}), (Counts{2, 1}));
  EXPECT_EQ(parts(Min(120, 10), {10, 3}), (Counts{1, 1}));
  EXPECT_EQ(parts(Min(1, 10), {0, 4}), (Counts{1, 1}));
  EXPECT_EQ(parts(Min(100, 10), {7, 3}, 0, ElementBytes::strings()), (Counts{4, 1}));
}

TEST(ShardedCases, Case01_MaxSizeCountsWholeRows) {
  EXPECT_EQ(parts(Max(4), {6, 1}), (Counts{6, 1}));
  EXPECT_EQ(parts(Max(4, 2), {6, 1}), (Counts{2, 1}));
  EXPECT_EQ(parts(Max(1024), {6, 1}), (Counts{1, 1}));
  EXPECT_EQ(parts(Max(36), {10, 3}), (Counts{4, 1}));
  EXPECT_EQ(parts(Max(24), {10, 3}), (Counts{5, 1}));
  EXPECT_EQ(parts(Max(24, 3), {10, 3}), (Counts{3, 1}));
  EXPECT_EQ(parts(Max(11), {10, 3}), (Counts{10, 1}));
  const Counts wide = {4, 8, 16, 32};
  EXPECT_EQ(parts(Max(131072), wide), (Counts{1, 1, 1, 1}));
  EXPECT_EQ(parts(Max(65536), wide, 1), (Counts{1, 1, 1, 1}));
  EXPECT_EQ(parts(Max(32768), wide, 2), (Counts{1, 1, 2, 1}));
  EXPECT_EQ(parts(Max(2048), wide, 3), (Counts{1, 1, 1, 32}));
  EXPECT_EQ(parts(Max(1024), wide, 3), (Counts{1, 1, 1, 32}));
  EXPECT_EQ(parts(Max(1024, 33), wide, 3), (Counts{1, 1, 1, 32}));
  EXPECT_EQ(parts(Max(1024, 2), wide, 3), (Counts{1, 1, 1, 2}));
  EXPECT_EQ(parts(Max(32768, {}, 8), wide, 3, ElementBytes::strings()), (Counts{1, 1, 1, 4}));
  EXPECT_EQ(parts(Max(67108863), {1048576, 128}), (Counts{9, 1}));
}

TEST(ShardedCases, Case02_SizesAndCapsArePositive) {
  const auto why = [](auto make) { return refusal<ValueError>(make); };
  EXPECT_EQ(why([] { Min(0); }), "MinSizePartitioner: min_shard_bytes must be positive, got 0");
  EXPECT_EQ(why([] { Min(4, 0); }), "MinSizePartitioner: max_shards must be positive, got 0");
  EXPECT_EQ(why([] { Min(4, 1, 0); }),
            "MinSizePartitioner: bytes_per_string must be positive, got 0");
  EXPECT_EQ(why([] { Max(0); }), "MaxSizePartitioner: max_shard_bytes must be positive, got 0");
  EXPECT_EQ(why([] { Max(4, -1); }),
            "MaxSizePartitioner: max_shards, where given, must be positive, got -1");
  EXPECT_EQ(why([] { ElementBytes(0); }),
            "partitioner: bytes of an element must be positive, got 0");
}

TEST(ShardedCases, Case03_MinSizeRefusesAnAxisBeyondTheLast) {
  EXPECT_EQ(refusal<ValueError>([] {
              parts(Min(), {6, 1}, 2);
            }),
            "MinSizePartitioner: cannot partition variable along axis 2 of shape (6, 1)");
}

TEST(ShardedCases, Case04_MaxSizeNeedsAWholeShape) {
  EXPECT_EQ(refusal<ValueError>([] {
              parts(Max(4), {Shape::kUnknown, 3});
            }),
            "MaxSizePartitioner: the shape is not fully defined: (?, 3)");
  EXPECT_EQ(refusal<ValueError>([] { Max(4)(Shape(), 4); }),
            "MaxSizePartitioner: the shape is not fully defined: (unknown rank)");
}

TEST(ShardedCases, Case05_MinSizeIsATargetThatPartsMayMiss) {
  EXPECT_EQ(parts(Min(8, 100), {5, 1}), (Counts{3, 1}));
  const Placement rows(5, 3, Sharding::kDiv);
  EXPECT_EQ(rows.shard_rows(0) * 4, 8);
  EXPECT_EQ(rows.shard_rows(1) * 4, 8);
  EXPECT_EQ(rows.shard_rows(2) * 4, 4);
}

TEST(ShardedCases, Case06_WithoutACapNoPartIsLargerThanMaxSize) {
  for (std::int64_t rows = 1; rows < 60; ++rows) {
    for (std::int64_t limit = 12; limit < 200; ++limit) {  // a row of three floats fits
      const std::int64_t n = parts(Max(limit), {rows, 3})[0];
      const Placement placement(rows, static_cast<std::int32_t>(n), Sharding::kDiv);
      ASSERT_LE(placement.shard_rows(0) * 12, limit) << rows << " rows";
      ASSERT_GE(placement.shard_rows(static_cast<std::int32_t>(n) - 1), 1) << rows << " rows";
    }
  }
}

TEST(ShardedCases, Case07_CountsBelowOneAreRefusedAndDimsOfZeroGiveOnePart) {
  EXPECT_EQ(refusal<ValueError>([] { Fixed(0); }),
            "FixedShardsPartitioner: num_shards must be positive, got 0");
  EXPECT_EQ(refusal<ValueError>([] { Max(4, 0); }),
            "MaxSizePartitioner: max_shards, where given, must be positive, got 0");
  EXPECT_EQ(parts(Fixed(3), {0, 2}), (Counts{1, 1}));
  EXPECT_EQ(parts(Min(1, 9), {4, 0}), (Counts{1, 1}));
  EXPECT_EQ(parts(Max(1), {4, 0}), (Counts{1, 1}));
  EXPECT_EQ(parts(Max(1), {0, 4}), (Counts{1, 1}));
}

TEST(Partitioner, SaysWhichAxisAShapeLacks) {
  const std::string text = "partitioner: axis must be -2..1 for shape (10, 3), got ";
  EXPECT_EQ(refusal<IndexError>([] { parts(Fixed(2), {10, 3}, 2); }), text + "2");
  EXPECT_EQ(refusal<IndexError>([] { parts(Min(), {10, 3}, -3); }), text + "-3");
  EXPECT_EQ(refusal<IndexError>([] { parts(Max(4), {10, 3}, -3); }), text + "-3");
}

TEST(Partitioner, TakesNoNumberThatIsNoDType) {
  EXPECT_EQ(refusal<ValueError>([] { ElementBytes(static_cast<DType>(7)); }),
            "partitioner: dtype: unknown value 7");
}

TEST(Partitioner, SaysWhichDimItNeeds) {
  EXPECT_EQ(refusal<ValueError>([] {
              parts(Fixed(2), {3, Shape::kUnknown}, 1);
            }),
            "FixedShardsPartitioner: the dim of axis 1 must be known, got shape (3, ?)");
  EXPECT_EQ(parts(Fixed(2), {3, Shape::kUnknown}), (Counts{2, 1}));
  EXPECT_EQ(refusal<ValueError>([] {
              parts(Min(), {3, Shape::kUnknown});
            }),
            "MinSizePartitioner: every dim must be known, got shape (3, ?)");
  EXPECT_EQ(refusal<ValueError>([] { Fixed(2)(Shape(), 4); }),
            "partitioner: a shape must have a rank, got none");
}

TEST(Partitioner, CountsBytesBeyondSixtyFourBitsExactly) {
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  // 2^62 * 2^62 * 8 bytes at 2^62 each: 2^65 parts, more than any cap.
  const Counts huge = {std::int64_t{1} << 62, std::int64_t{1} << 62};
  EXPECT_EQ(parts(Min(std::int64_t{1} << 62, kLargest), huge, 0, 8), (Counts{huge[0], 1}));
  EXPECT_EQ(parts(Min(std::int64_t{1} << 62, 7), huge, 0, 8), (Counts{7, 1}));
  EXPECT_EQ(parts(Max(kLargest), huge, 0, 8), (Counts{huge[0], 1}));
  // 2^53 + 1 bytes at 2^53 each are two parts, which doubles would take for one.
  const std::int64_t odd = (std::int64_t{1} << 53) + 1;
  EXPECT_EQ(parts(Min(odd - 1, 9), {odd}, 0, 1), (Counts{2}));
}

Partitioner made(const Json& kind, const Json& params) {
  const auto value = [&](const char* name) { return params.at(name).get<std::int64_t>(); };
  if (kind == "FixedShards") return Fixed(value("num_shards"));
  if (kind == "MinSize")
    return Min(value("min_shard_bytes"), value("max_shards"), value("bytes_per_string"));
  std::optional<std::int64_t> most;
  if (!params.at("max_shards").is_null()) most = value("max_shards");
  return Max(value("max_shard_bytes"), most, value("bytes_per_string"));
}

/// Counts, or {"category": ...} in the golden file's words.
Json answer(const Json& one) {
  try {
    Counts dims;
    for (const Json& dim : one.at("shape"))
      dims.push_back(dim.is_null() ? Shape::kUnknown : dim.get<std::int64_t>());
    const ElementBytes element = one.at("dtype") == "string"
                                     ? ElementBytes::strings()
                                     : ElementBytes(one.at("element_size").get<std::int64_t>());
    return parts(made(one.at("kind"), one.at("params")), dims, one.at("axis").get<int>(), element);
  } catch (const ValueError&) {
    return {{"category", "InvalidArgument"}};
  } catch (const IndexError&) {
    return {{"category", "OutOfRange"}};
  }
}

// tests/golden/README.md.
TEST(Partitioner, AgreesWithTensorFlow) {
  std::ifstream file(source_path("tests/golden/partitioners.json"));
  const Json golden = Json::parse(file);
  ASSERT_EQ(golden.at("cases").size(), 420u);
  for (const Json& one : golden.at("cases")) {
    const Json& wanted = one.contains("correct") ? one.at("correct") : one.at("tf");
    const Json got = answer(one);
    if (wanted.is_array())
      EXPECT_EQ(got, wanted) << one;
    else
      EXPECT_EQ(got.is_array() ? got : got.at("category"), wanted.at("category")) << one;
  }
}

}  // namespace
}  // namespace embertable
