#include "embertable/shape.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "embertable/errors.h"
#include "testing/refusal.h"

namespace embertable {
namespace {

constexpr std::int64_t kUnknown = Shape::kUnknown;

TEST(Shape, KnowsItsRankAndDims) {
  const Shape shape({2, 4});
  EXPECT_TRUE(shape.has_rank());
  EXPECT_EQ(shape.rank(), 2);
  EXPECT_EQ(shape[1], 4);
  EXPECT_EQ(std::vector<std::int64_t>(shape.dims().begin(), shape.dims().end()),
            (std::vector<std::int64_t>{2, 4}));
}

TEST(Shape, WithoutDimsHasUnknownRankAndIsNoScalar) {
  EXPECT_FALSE(Shape().has_rank());
  EXPECT_EQ(Shape().rank(), -1);
  EXPECT_TRUE(Shape().dims().empty());
  EXPECT_EQ(Shape::scalar().rank(), 0);
  EXPECT_NE(Shape(), Shape::scalar());
}

TEST(Shape, IsFullyDefinedIfEveryDimIsKnown) {
  EXPECT_FALSE(Shape().fully_defined());
  EXPECT_FALSE(Shape({kUnknown}).fully_defined());
  EXPECT_FALSE(Shape({2, kUnknown, 3}).fully_defined());
  EXPECT_TRUE(Shape({2, 0, 3}).fully_defined());
  EXPECT_TRUE(Shape::scalar().fully_defined());
}

TEST(Shape, CountsElements) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(Shape::scalar().num_elements(), 1);
  EXPECT_EQ(Shape({7}).num_elements(), 7);
  EXPECT_EQ(Shape({2, 3, 4}).num_elements(), 24);
  EXPECT_EQ(Shape({kMost}).num_elements(), kMost);
  EXPECT_EQ(Shape({1LL << 40, 1LL << 40}).num_elements(), kMost);
  EXPECT_EQ(Shape({1LL << 40, 1LL << 40, 0}).num_elements(), 0);
}

TEST(Shape, ChangesAtItsEnds) {
  EXPECT_EQ(Shape({2, 4}).with_leading(7), Shape({7, 4}));
  EXPECT_EQ(Shape({2, 4}).with_leading(kUnknown), Shape({kUnknown, 4}));
  EXPECT_EQ(Shape({2, 4}).without_last(), Shape({2}));
  EXPECT_EQ(Shape({2}).without_last(), Shape::scalar());
  EXPECT_EQ(Shape::scalar().append(3), Shape({3}));
  EXPECT_EQ(Shape().append(3), Shape());
  EXPECT_EQ(Shape({2}).append(3).append(4), Shape({2, 3, 4}));
}

TEST(Shape, EqualsByRankAndDims) {
  EXPECT_EQ(Shape({2, kUnknown}), Shape({2, kUnknown}));
  EXPECT_NE(Shape({2, kUnknown}), Shape({2, 3}));
  EXPECT_NE(Shape({2}), Shape({2, 1}));
  EXPECT_EQ(Shape({2, 9}).without_last(), Shape({2}));
  EXPECT_EQ(Shape(), Shape());
}

TEST(Shape, PrintsLikeATuple) {
  EXPECT_EQ(Shape({2, 4}).to_string(), "(2, 4)");
  EXPECT_EQ(Shape({2, kUnknown}).to_string(), "(2, ?)");
  EXPECT_EQ(Shape({2}).to_string(), "(2)");
  EXPECT_EQ(Shape({0}).to_string(), "(0)");
  EXPECT_EQ(Shape::scalar().to_string(), "()");
  EXPECT_EQ(Shape().to_string(), "(unknown rank)");
}

TEST(Shape, HoldsEightDimsAndRefusesMore) {
  const std::vector<std::int64_t> dims(9, 2);
  const Shape most(std::span<const std::int64_t>(dims).first(8));
  EXPECT_EQ(most.num_elements(), 256);
  EXPECT_EQ(refusal<ValueError>([&] { return Shape(std::span<const std::int64_t>(dims)); }),
            "shape: rank must be at most 8, got 9");
  EXPECT_EQ(refusal<ValueError>([&] { return most.append(2); }),
            "shape: rank must be at most 8, got 9");
}

TEST(Shape, RefusesNegativeDims) {
  EXPECT_EQ(refusal<ValueError>([] {
              return Shape({4, -2});
            }),
            "shape: dims must be >= 0, or -1 for unknown, got -2 at axis 1");
  EXPECT_EQ(refusal<ValueError>([] { return Shape({4}).append(-3); }),
            "shape: dims must be >= 0, or -1 for unknown, got -3 at axis 1");
  EXPECT_EQ(refusal<ValueError>([] { return Shape({4}).with_leading(-4); }),
            "shape: dims must be >= 0, or -1 for unknown, got -4 at axis 0");
}

}  // namespace
}  // namespace embertable
