#include "rows/placement.h"

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

TEST(Placement, GivesEveryHostAllRowsOfAReplicatedTable) {
  for (const Sharding sharding : {Sharding::kDiv, Sharding::kMod}) {
    const Placement copies(4, 3, sharding, true);
    for (std::int32_t host = 0; host < 3; ++host) {
      EXPECT_EQ(rows_of(copies, host), (std::vector<std::int64_t>{0, 1, 2, 3}));
      EXPECT_EQ(copies.host_of(3, host), host);
      EXPECT_EQ(rows_of(copies.shares(), host), rows_of(Placement(4, 3, sharding), host));
    }
    EXPECT_FALSE(Placement(4, 1, sharding, true).replicated());
  }
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

TEST(Placement, FindsHostAndLocalRowByOneDivision) {
  for (const Sharding sharding : {Sharding::kDiv, Sharding::kMod}) {
    for (const std::int64_t rows : {3, 10, 13}) {  // fewer than hosts, as many each, more on some
      const Placement placement(rows, 5, sharding);
      for (std::int64_t row = 0; row < rows; ++row) {
        const auto narrow = placement.place_of(static_cast<std::uint32_t>(row));
        const auto wide = placement.place_of(static_cast<std::uint64_t>(row));
        EXPECT_EQ(narrow.host, placement.host_of(row));
        EXPECT_EQ(narrow.local, placement.local_row(row));
        EXPECT_EQ(wide.host, narrow.host);
        EXPECT_EQ(wide.local, narrow.local);
      }
    }
  }
}

TEST(ShardedCases, Case61_TheTablesOfRowsByShard) {
  const auto table = [](std::int64_t rows, std::int32_t shards, Sharding sharding) {
    std::vector<std::vector<std::int64_t>> result;
    for (std::int32_t shard = 0; shard < shards; ++shard)
      result.push_back(rows_of(Placement(rows, shards, sharding), shard));
    return result;
  };
  using Table = std::vector<std::vector<std::int64_t>>;
  EXPECT_EQ(table(13, 5, Sharding::kDiv),
            (Table{{0, 1, 2}, {3, 4, 5}, {6, 7, 8}, {9, 10}, {11, 12}}));
  EXPECT_EQ(table(13, 5, Sharding::kMod),
            (Table{{0, 5, 10}, {1, 6, 11}, {2, 7, 12}, {3, 8}, {4, 9}}));
  EXPECT_EQ(table(10, 4, Sharding::kDiv), (Table{{0, 1, 2}, {3, 4, 5}, {6, 7}, {8, 9}}));
  EXPECT_EQ(table(10, 4, Sharding::kMod), (Table{{0, 4, 8}, {1, 5, 9}, {2, 6}, {3, 7}}));
  const Placement div(32, 3, Sharding::kDiv);
  EXPECT_EQ(div.shard_rows(0), 11);
  EXPECT_EQ(div.shard_rows(1), 11);
  EXPECT_EQ(div.shard_rows(2), 10);
  const auto place = [&](std::int64_t row) {
    return std::pair(div.host_of(row), div.local_row(row));
  };
  using Place = std::pair<std::int32_t, std::int64_t>;
  EXPECT_EQ(place(10), Place(0, 10));
  EXPECT_EQ(place(11), Place(1, 0));
  EXPECT_EQ(place(21), Place(1, 10));
  EXPECT_EQ(place(22), Place(2, 0));
  EXPECT_EQ(place(31), Place(2, 9));
}

TEST(ShardedCases, Case61_BothLayoutsAreBijectionsOfTheSameSizes) {
  for (std::int64_t rows = 1; rows <= 50; ++rows) {
    for (std::int32_t shards = 1; shards <= 12; ++shards) {
      const Placement div(rows, shards, Sharding::kDiv), mod(rows, shards, Sharding::kMod);
      for (std::int32_t p = 0; p < shards; ++p) {
        const std::int64_t size = rows / shards + (p < rows % shards ? 1 : 0);
        ASSERT_EQ(div.shard_rows(p), size);
        ASSERT_EQ(mod.shard_rows(p), size);
      }
      for (std::int64_t id = 0; id < rows; ++id) {
        ASSERT_EQ(mod.host_of(id), id % shards);
        ASSERT_EQ(mod.local_row(id), id / shards);
        ASSERT_EQ(div.global_row(div.host_of(id), div.local_row(id)), id);
      }
    }
  }
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
