#include "variable/row_locator.h"

#include <gtest/gtest.h>

#include <random>

#include "testing/executor.h"

namespace embertable {
namespace {

void expect_every_row_found(const std::vector<std::int64_t>& offsets) {
  const RowLocator locator(offsets);
  for (std::size_t b = 0; b + 1 < offsets.size(); ++b)
    for (std::int64_t row = offsets[b]; row < offsets[b + 1]; ++row)
      ASSERT_EQ(locator.block(row), b) << "row " << row;
}

TEST(RowLocator, FindsTheBlockOfEveryRow) {
  expect_every_row_found({0, 0});
  expect_every_row_found({0, 1});
  expect_every_row_found({0, 0, 0, 5, 5, 6, 6});
  std::mt19937 random(test_seed(1));
  for (int repeat = 0; repeat < 200; ++repeat) {
    std::vector<std::int64_t> offsets = {0};
    const auto blocks = static_cast<int>(random() % 40 + 1);
    for (int b = 0; b < blocks; ++b)
      offsets.push_back(offsets.back() +
                        (random() % 3 == 0 ? 0 : static_cast<int>(random() % 900)));
    expect_every_row_found(offsets);
  }
}

TEST(RowLocator, HugeBlocksNeedNoHugeIndex) {
  const std::int64_t most = std::int64_t{1} << 62;
  const RowLocator locator({0, 1, 2, most});
  EXPECT_EQ(locator.block(0), 0u);
  EXPECT_EQ(locator.block(1), 1u);
  EXPECT_EQ(locator.block(2), 2u);
  EXPECT_EQ(locator.block(most - 1), 2u);
}

}  // namespace
}  // namespace embertable
