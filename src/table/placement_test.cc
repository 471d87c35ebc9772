#include "table/placement.h"

#include <gtest/gtest.h>

#include <vector>

namespace embertable {
namespace {

std::vector<std::int64_t> rows_of(const Placement& placement, std::int32_t host) {
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < placement.shard_rows(host); ++i)
    rows.push_back(placement.global_row(host, i));
  return rows;
}

TEST(Placement, ThirteenRowsOnFiveHosts) {
  const Placement div(13, 5, Sharding::kDiv);
  EXPECT_EQ(rows_of(div, 0), (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(rows_of(div, 2), (std::vector<std::int64_t>{6, 7, 8}));
  EXPECT_EQ(rows_of(div, 3), (std::vector<std::int64_t>{9, 10}));
  EXPECT_EQ(rows_of(div, 4), (std::vector<std::int64_t>{11, 12}));
  const Placement mod(13, 5, Sharding::kMod);
  EXPECT_EQ(rows_of(mod, 0), (std::vector<std::int64_t>{0, 5, 10}));
  EXPECT_EQ(rows_of(mod, 2), (std::vector<std::int64_t>{2, 7, 12}));
  EXPECT_EQ(rows_of(mod, 4), (std::vector<std::int64_t>{4, 9}));
}

// Engine case 98.
TEST(EngineCases, Case098_RowsToHostAndLocalRow) {
  const Placement div(13, 5, Sharding::kDiv);
  const Placement mod(13, 5, Sharding::kMod);
  const auto at = [](const Placement& p, std::int64_t row) {
    return std::pair<std::int32_t, std::int64_t>(p.host_of(row), p.local_row(row));
  };
  EXPECT_EQ(at(div, 0), (std::pair<std::int32_t, std::int64_t>(0, 0)));
  EXPECT_EQ(at(div, 8), (std::pair<std::int32_t, std::int64_t>(2, 2)));
  EXPECT_EQ(at(div, 9), (std::pair<std::int32_t, std::int64_t>(3, 0)));
  EXPECT_EQ(at(div, 12), (std::pair<std::int32_t, std::int64_t>(4, 1)));
  EXPECT_EQ(at(mod, 12), (std::pair<std::int32_t, std::int64_t>(2, 2)));
  EXPECT_EQ(at(mod, 4), (std::pair<std::int32_t, std::int64_t>(4, 0)));
}

TEST(Placement, EveryRowHasOnePlaceWhateverTheSizes) {
  for (const Sharding sharding : {Sharding::kDiv, Sharding::kMod}) {
    for (std::int64_t rows = 1; rows < 40; ++rows) {
      for (std::int32_t hosts = 1; hosts < 20; ++hosts) {
        const Placement placement(rows, hosts, sharding);
        std::int64_t total = 0;
        for (std::int32_t host = 0; host < hosts; ++host) total += placement.shard_rows(host);
        ASSERT_EQ(total, rows);
        for (std::int64_t row = 0; row < rows; ++row) {
          const std::int32_t host = placement.host_of(row);
          ASSERT_LT(placement.local_row(row), placement.shard_rows(host));
          ASSERT_EQ(placement.global_row(host, placement.local_row(row)), row);
        }
      }
    }
  }
}

}  // namespace
}  // namespace embertable
