#include "engine/gradient_tiles.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "kernels/level.h"
#include "step/bucket_policy.h"
#include "testing/executor.h"

namespace embertable::engine {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
using Place = GradientTiles::Place;

/// Counts the regions that it is given.
class CountingExecutor final : public Executor {
 public:
  std::int32_t workers() const noexcept override { return 2; }
  void run(std::int64_t items, FunctionRef<void(const WorkItem&)> body) override {
    ++regions;
    for (std::int64_t i = 0; i < items; ++i) body({i, -1, 0});
  }
  int regions = 0;
};

TEST(GradientTiles, CopyEachPartToItsPlaceAndRoundDoubles) {
  const std::int64_t count = 2 * kGradientTileFloats + 1;
  std::vector<double> doubles(count + 3);
  std::iota(doubles.begin(), doubles.end(), 0.1);
  std::vector<float> floats(count + 3);
  std::iota(floats.begin(), floats.end(), 0.0f);
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    TestExecutor executor(seed, 3);
    std::vector<float> of_doubles(count), of_floats(count);
    GradientTiles tiles;
    tiles.add({.values = doubles, .first = 2, .count = count, .copy = of_doubles.data()});
    tiles.add({.values = floats, .first = 3, .count = count, .copy = of_floats.data()});
    EXPECT_FALSE(tiles.run(executor, 0, true, simd_level()));
    for (std::int64_t i = 0; i < count; ++i) {
      ASSERT_EQ(of_doubles[i], static_cast<float>(doubles[i + 2]));
      ASSERT_EQ(of_floats[i], floats[i + 3]);
    }
  }
}

TEST(GradientTiles, FindTheFirstByCoreFeatureAndPositionInAnyOrder) {
  const std::int64_t count = 3 * kGradientTileFloats;
  std::vector<float> good(count, 1), bad = good;
  bad[kGradientTileFloats + 5] = bad[kGradientTileFloats + 4] = kInfinity;
  bad[2 * kGradientTileFloats] = std::numeric_limits<float>::quiet_NaN();
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    TestExecutor executor(seed, 4);
    GradientTiles tiles;
    // A step lists them by replica and feature, and then by core.
    tiles.add({.core = 0, .feature = 0, .values = good, .count = count});
    tiles.add({.core = 1, .feature = 0, .values = bad, .count = count});
    tiles.add({.core = 0, .feature = 1, .values = bad, .first = 7, .count = count - 7});
    tiles.add({.core = 1, .feature = 1, .values = bad, .count = count});
    EXPECT_EQ(tiles.run(executor, 0, true, simd_level()), (Place{0, 1, kGradientTileFloats - 3}));
    tiles.clear();
    tiles.add({.core = 2, .feature = 1, .values = bad, .count = count});
    EXPECT_EQ(tiles.run(executor, 0, true, simd_level()), (Place{2, 1, kGradientTileFloats + 4}));
    tiles.clear();
    tiles.add({.values = bad, .count = count});
    EXPECT_FALSE(tiles.run(executor, 0, false, simd_level()));
  }
}

TEST(GradientTiles, StayOnTheCallingThreadWhereTheyAreFew) {
  const std::vector<float> few(100, 1), many(2 * kGradientTileFloats, 1);
  CountingExecutor executor;
  GradientTiles tiles;
  EXPECT_FALSE(tiles.run(executor, 0, true, simd_level()));
  for (int i = 0; i < 3; ++i) tiles.add({.values = few, .count = 100});
  EXPECT_FALSE(tiles.run(executor, 301, true, simd_level()));
  EXPECT_EQ(executor.regions, 0);
  tiles.clear();
  tiles.add({.values = many, .count = std::ssize(many)});
  EXPECT_FALSE(tiles.run(executor, 301, true, simd_level()));
  EXPECT_EQ(executor.regions, 1);
}

}  // namespace
}  // namespace embertable::engine
