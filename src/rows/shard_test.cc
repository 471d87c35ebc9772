#include "rows/shard.h"

#include <gtest/gtest.h>

#include <vector>

namespace embertable {
namespace {

std::vector<float> contents(const Shard& shard, std::int32_t slot) {
  std::vector<float> all(shard.rows() * shard.width(slot));
  shard.read(slot, 0, 1, shard.rows(), all.data());
  return all;
}

/// Where a variable of a row is.
const std::byte* place(const Shard& shard, std::int32_t slot, std::int64_t row) {
  return shard.memory(slot) + row * shard.stride_bytes(slot);
}

TEST(RecordStride, KeepsWholeLinesAndAvoidsSplitOnes) {
  EXPECT_EQ(record_stride(1), 1);
  EXPECT_EQ(record_stride(16), 16);
  EXPECT_EQ(record_stride(64), 64);
  EXPECT_EQ(record_stride(15), 16);    // 15 floats apart, 14 of 16 records would touch two lines
  EXPECT_EQ(record_stride(30), 32);    // 33 is within 12.5 % too, but touches more
  EXPECT_EQ(record_stride(100), 100);  // 25 of 4 floats: no record touches an eighth line
}

TEST(Shard, FullSlotsStandInTheRecordAndRowWiseOnesApart) {
  const Shard shard(Placement(10, 1, Sharding::kDiv), 0, 4, {false, true, false});
  EXPECT_EQ(shard.block().stride, record_stride(12));
  EXPECT_EQ(place(shard, 0, 3), place(shard, -1, 3) + 16);
  EXPECT_EQ(place(shard, 2, 3), place(shard, -1, 3) + 32);
  EXPECT_EQ(place(shard, 1, 3), place(shard, 1, 0) + 12);
  EXPECT_EQ(shard.width(1), 1);
  EXPECT_EQ(shard.width(2), 4);
}

TEST(Shard, HoldsItsRowsOfTheTableUnderBothShardings) {
  const auto pool = make_thread_pool(2);
  Shard div(Placement(5, 2, Sharding::kDiv), 1, 2, {});
  div.initialize(-1, Initializer::row_id(5), 0, *pool);
  EXPECT_EQ(contents(div, -1), (std::vector<float>{8, 8, 9, 9}));
  Shard mod(Placement(5, 2, Sharding::kMod), 1, 2, {});
  mod.initialize(-1, Initializer::row_id(5), 0, *pool);
  EXPECT_EQ(contents(mod, -1), (std::vector<float>{6, 6, 8, 8}));
}

TEST(Shard, RandomValuesDoNotDependOnShardingOrThreads) {
  const Initializer random = Initializer::uniform(-1, 1, 7);
  const auto rows_by_id = [&](std::int32_t hosts, Sharding sharding, std::int32_t threads) {
    const Placement placement(40000, hosts, sharding);
    std::vector<float> all(40000 * 3);
    const auto pool = make_thread_pool(threads);
    for (std::int32_t host = 0; host < hosts; ++host) {
      Shard shard(placement, host, 3, {false});
      shard.initialize(-1, random, 11, *pool);
      for (std::int64_t row = 0; row < shard.rows(); ++row)
        shard.read(-1, row, 1, 1, &all[placement.global_row(host, row) * 3]);
    }
    return all;
  };
  const std::vector<float> expected = rows_by_id(1, Sharding::kDiv, 1);
  EXPECT_EQ(rows_by_id(1, Sharding::kDiv, 3), expected);
  EXPECT_EQ(rows_by_id(3, Sharding::kDiv, 2), expected);
  EXPECT_EQ(rows_by_id(4, Sharding::kMod, 2), expected);
}

TEST(Shard, WithoutRowsHoldsNothing) {
  Shard shard(Placement(2, 4, Sharding::kDiv), 3, 8, {true, false});
  shard.initialize(-1, Initializer::constant(1), 0, *make_inline_executor());
  EXPECT_EQ(shard.rows(), 0);
  EXPECT_EQ(shard.records().bytes(), 0);
}

}  // namespace
}  // namespace embertable
