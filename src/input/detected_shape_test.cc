#include "input/detected_shape.h"

#include <gtest/gtest.h>

#include "embertable/errors.h"
#include "testing/refusal.h"

namespace embertable {
namespace {

const std::vector<std::int64_t> kNumbers(64);

DenseIds dense(Shape shape) {
  std::int64_t count = 1;
  for (const std::int64_t dim : shape.dims()) count *= dim;
  return {.values = std::span(kNumbers).first(count), .shape = shape};
}
SparseIds sparse(Shape shape) { return {.indices = {}, .values = {}, .dense_shape = shape}; }
RaggedIds ragged(std::size_t rows) {
  return {.row_splits = std::span(kNumbers).first(rows + 1), .values = {}};
}

std::string shape(const FeatureIds& ids, std::int64_t length = 0, bool configured = false) {
  return detected_output_shape(ids, length, configured, "user/1").to_string();
}

template <class Error>
std::string shape_refusal(const FeatureIds& ids) {
  return refusal<Error>([&] { shape(ids); });
}

TEST(DetectedShape, OfDenseIdsLosesALastDimOfOne) {
  EXPECT_EQ(shape(dense({4})), "(4)");
  EXPECT_EQ(shape(dense({1})), "(1)");
  EXPECT_EQ(shape(dense({4, 1})), "(4)");
  EXPECT_EQ(shape(dense({4, 5, 1})), "(4, 5)");
  EXPECT_EQ(shape(dense({0})), "(0)");
  EXPECT_EQ(shape(DenseIds{.values = kNumbers}), "(64)");
}

TEST(DetectedShape, OfSparseIdsLosesTheLastDim) {
  EXPECT_EQ(shape(sparse({4, 7})), "(4)");
  EXPECT_EQ(shape(sparse({4, 5, 7})), "(4, 5)");
}

TEST(DetectedShape, OfRaggedIdsIsTheNumberOfRows) {
  EXPECT_EQ(shape(ragged(4)), "(4)");
  EXPECT_EQ(shape(ragged(0)), "(0)");
}

TEST(DetectedShape, HeedsTheSequenceLengthForRaggedAndRankTwoSparseOnly) {
  EXPECT_EQ(shape(sparse({4, 7}), 3), "(4, 3)");
  EXPECT_EQ(shape(ragged(4), 3), "(4, 3)");
  EXPECT_EQ(shape(sparse({4, 5, 7}), 3), "(4, 5)");
  EXPECT_EQ(shape(dense({4}), 3), "(4)");
}

TEST(DetectedShape, IgnoresTheSequenceLengthOfAConfiguredFeature) {
  EXPECT_EQ(shape(sparse({4, 7}), 3, true), "(4)");
  EXPECT_EQ(shape(ragged(4), 3, true), "(4)");
}

TEST(DetectedShape, SaysWhichRankOrShapeIsWrong) {
  EXPECT_EQ(shape_refusal<ValueError>(dense(Shape::scalar())),
            "feature 'user/1': dense ids must have rank 1 or more, got rank 0");
  EXPECT_EQ(shape_refusal<ValueError>(dense({2, 3})),
            "feature 'user/1': dense ids of rank 2 or more must have 1 as last dim, got shape (2, "
            "3); several ids of a sample are RaggedIds");
  EXPECT_EQ(shape_refusal<ValueError>(DenseIds{.values = kNumbers, .shape = {Shape::kUnknown}}),
            "feature 'user/1': the shape of dense ids must be fully defined, got (?)");
  EXPECT_EQ(shape_refusal<ValueError>(sparse({4})),
            "feature 'user/1': sparse ids must have rank 2 or more, got rank 1");
  EXPECT_EQ(shape_refusal<ValueError>(sparse(Shape())),
            "feature 'user/1': sparse ids must have a dense_shape, got unknown rank");
  EXPECT_EQ(shape_refusal<ValueError>(sparse({4, Shape::kUnknown})),
            "feature 'user/1': the dense_shape of sparse ids must be fully defined, got (4, ?)");
  EXPECT_EQ(shape_refusal<DataError>(RaggedIds{}),
            "feature 'user/1': row_splits must have one number or more, got none");
}

}  // namespace
}  // namespace embertable
