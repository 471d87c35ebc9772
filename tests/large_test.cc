// Sizes at which 32-bit offsets would wrap.
#include <gtest/gtest.h>

#include <vector>

#include "embertable/embertable.h"

namespace embertable {
namespace {

Embedding engine_of(TablePtr table, double rate) {
  return Embedding(Nested<FeatureConfig>(FeatureConfig{.table = std::move(table)}),
                   Optimizer("sgd", rate), make_strategy());
}

TEST(Large, RowsBeyondFourGibibytesAreReadAndTrained) {
  constexpr std::int64_t kDim = 64, kRows = (std::int64_t{5} << 30) / (kDim * 4);
  constexpr std::int64_t kRowsInFourGibibytes = (std::int64_t{4} << 30) / (kDim * 4);
  Embedding engine = engine_of(make_table({.vocabulary_size = kRows,
                                           .dim = kDim,
                                           .initializer = Initializer::zeros(),
                                           .optimizer = {},
                                           .combiner = Combiner::kSum,
                                           .name = "large"}),
                               0.5);
  // Each with the row on which a 32-bit offset would land.
  const std::vector<std::int64_t> ids = {kRows - 1, kRowsInFourGibibytes,
                                         kRowsInFourGibibytes + 12345};
  const Batch batch{Nested<FeatureIds>(FeatureIds(DenseIds{ids, {}})), {}};
  const std::vector<float> gradient(ids.size() * kDim, 2.0f);
  for (int step = 0; step < 2; ++step) {
    engine.enqueue(batch);
    const Activations activations = engine.dequeue();
    for (const float x : activations(0).values) ASSERT_EQ(x, static_cast<float>(-step));
    engine.apply_gradients(Nested<Gradient>(Gradient{gradient, {}}));
  }
  std::vector<float> row(kDim);
  for (const std::int64_t id : ids) {
    engine.read_rows("large", std::vector<std::int64_t>{id}, row);
    EXPECT_EQ(row, std::vector<float>(kDim, -2.0f)) << id;
    engine.read_rows("large", std::vector<std::int64_t>{id - kRowsInFourGibibytes}, row);
    EXPECT_EQ(row, std::vector<float>(kDim, 0.0f)) << id - kRowsInFourGibibytes;
  }
}

TEST(Large, ABatchOfMoreThanTwoGibibytesOfActivationsIsTrained) {
  constexpr std::int64_t kDim = 1024, kRows = 16, kSamples = 600000;
  Embedding engine = engine_of(make_table({.vocabulary_size = kRows,
                                           .dim = kDim,
                                           .initializer = Initializer::constant(1),
                                           .optimizer = {},
                                           .combiner = Combiner::kSum,
                                           .name = "wide"}),
                               1.0 / 65536);
  std::vector<std::int32_t> ids(kSamples);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(i % kRows);
  engine.enqueue(Batch{Nested<FeatureIds>(FeatureIds(DenseIds{ids, {}})), {}});
  const Activations activations = engine.dequeue();
  const std::span<const float> values = activations(0).values;
  ASSERT_GT(values.size() * sizeof(float), std::size_t{1} << 31);
  EXPECT_EQ(values.front(), 1.0f);
  EXPECT_EQ(values.back(), 1.0f);
  engine.apply_gradients(
      Nested<Gradient>(Gradient{values, {}}));  // each activation is its own gradient
  std::vector<float> rows(kRows * kDim);
  std::vector<std::int64_t> all(kRows);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
  engine.read_rows("wide", all, rows);
  EXPECT_EQ(rows, std::vector<float>(kRows * kDim,
                                     1.0f - 37500.0f / 65536.0f));  // 600,000 / 16 ones, exactly
}

TEST(Large, RowNumbersOfSixtyFourBitsGiveTheSameRows) {
  constexpr std::int64_t kRows = (std::int64_t{1} << 31) + 100;  // 8 GiB of which little is touched
  Embedding engine = engine_of(make_table({.vocabulary_size = kRows,
                                           .dim = 1,
                                           .initializer = Initializer::zeros(),
                                           .optimizer = {},
                                           .combiner = Combiner::kSum,
                                           .name = "narrow"}),
                               1.0);
  const std::vector<std::int64_t> ids = {kRows - 1, 5, (std::int64_t{1} << 31) + 5, kRows - 1},
                                  splits = {0, 2, 4};
  engine.enqueue(Batch{Nested<FeatureIds>(FeatureIds(RaggedIds{splits, ids})), {}});
  engine.dequeue();
  const std::vector<float> gradient = {1, 10};
  engine.apply_gradients(Nested<Gradient>(Gradient{gradient, {}}));
  std::vector<float> rows(4);
  engine.read_rows("narrow",
                   std::vector<std::int64_t>{kRows - 1, 5, (std::int64_t{1} << 31) + 5, 0}, rows);
  EXPECT_EQ(rows, (std::vector<float>{-11, -1, -10, 0}));
}

}  // namespace
}  // namespace embertable
