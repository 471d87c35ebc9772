#include "apps/jobs/math/alias_table.h"

#include <gtest/gtest.h>

namespace embertable::jobs {
namespace {

/// How often each number comes when all bits are tried, evenly.
std::vector<double> shares(const AliasTable& table, std::size_t size) {
  std::vector<double> found(size);
  constexpr std::uint64_t kTableDraws = 1 << 20;
  for (std::uint64_t i = 0; i < kTableDraws; ++i) {
    const std::uint64_t column = i % 1024, below = i / 1024;
    const std::uint64_t bits = (column << 54) | (below << 22);
    found[table(bits)] += 1.0 / kTableDraws;
  }
  return found;
}

TEST(AliasTable, DrawsByWeight) {
  const std::vector<double> weights = {1, 0, 5, 2};
  const std::vector<double> found = shares(AliasTable(weights), 4);
  for (std::size_t i = 0; i < weights.size(); ++i) EXPECT_NEAR(found[i], weights[i] / 8, 2e-3);
  EXPECT_EQ(found[1], 0);
}

TEST(AliasTable, OfOneOrOfEqualNumbers) {
  EXPECT_EQ(AliasTable(std::vector<double>{3})(~0ull), 0);
  const AliasTable even(std::vector<double>(7, 0.1));
  for (const double share : shares(even, 7)) EXPECT_NEAR(share, 1.0 / 7, 2e-3);
}

TEST(AliasTable, OfSkewedWeightsGivesEachItsShare) {
  std::vector<double> weights;
  double sum = 0;
  for (int i = 1; i <= 50; ++i) {
    weights.push_back(1.0 / i);
    sum += weights.back();
  }
  const std::vector<double> found = shares(AliasTable(weights), weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i) EXPECT_NEAR(found[i], weights[i] / sum, 1e-3);
}

}  // namespace
}  // namespace embertable::jobs
