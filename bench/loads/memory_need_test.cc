#include "bench/loads/memory_need.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace embertable::bench {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kMegabyte = 1'000'000;

/// A table of 256 MB with its slots, and little else.
Load big_table() {
  Load load;
  load.name = "big";
  load.tables = {{.rows = 1'000'000, .dim = 63}};
  load.features = {{}};
  load.samples = 1;
  load.batches = 1;
  return load;
}

std::string memory_need_refusal(const Load& load, std::size_t free_bytes) {
  try {
    require_memory(load, {}, free_bytes);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(MemoryNeed, CountsEachCopyOfTables) {
  EXPECT_EQ(bytes_for(big_table(), {.tables = 3}) - bytes_for(big_table(), {.tables = 1}),
            512 * kMegabyte);
}

TEST(MemoryNeed, CountsSlotsOfEveryColumn) {
  Load load = big_table();
  const std::size_t rowwise = bytes_for(load, {.tables = 1});
  load.tables.front().rule = "adam";
  EXPECT_EQ(bytes_for(load, {.tables = 1}) - rowwise, (2 * 63 - 1) * 4 * kMegabyte);
}

TEST(MemoryNeed, CountsBatchesAsOftenAsTheyAreDrawn) {
  Load load = big_table();
  load.samples = 100'000;
  load.features.front().max_ids = 99;
  load.batches = 16;
  const std::size_t once = bytes_for(load), thrice = bytes_for(load, {.batches = 3});
  const std::size_t ids = 16 * 50 * 100'000;
  EXPECT_GE(thrice - once, 2 * ids * 8);
  EXPECT_EQ(thrice - once, 2 * (ids * 20 + std::size_t{16} * (100'000 * 8 + 512)));
}

TEST(MemoryNeed, CountsTheBatchesOfEveryProcessAndTheTablesOnce) {
  Load load = big_table();
  const std::size_t tables = 256 * kMegabyte, alone = bytes_for(load, {.tables = 1}) - tables;
  EXPECT_EQ(bytes_for(load, {.tables = 1, .processes = 3}), tables + 3 * alone);
}

TEST(MemoryNeed, CountsTheGradientsOfWideBatches) {
  Load load = big_table();
  const std::size_t narrow = bytes_for(load);
  load.samples = 1'000'000;
  EXPECT_GE(bytes_for(load) - narrow, 2 * 252 * kMegabyte);
}

TEST(MemoryNeed, SaysWhatIsNeededAndWhatIsFree) {
  const std::size_t needed = bytes_for(big_table());
  EXPECT_EQ(memory_need_refusal(big_table(), needed * 5 / 4 + 1), "");
  EXPECT_EQ(memory_need_refusal(big_table(), 0), "") << "the system does not say";
  EXPECT_EQ(memory_need_refusal(big_table(), 700 * kMegabyte),
            "big: needs 0.7 GB, 0.7 GB are free, of which 80 % may be taken");
}

TEST(MemoryNeed, HalvesRowsUntilTheyFit) {
  Load load = big_table();
  EXPECT_FALSE(make_fit(load, {}, 2000 * kMegabyte));
  EXPECT_EQ(load.tables.front().rows, 1'000'000);
  EXPECT_TRUE(make_fit(load, {}, 400 * kMegabyte));
  EXPECT_EQ(load.tables.front().rows, 250'000);
  EXPECT_THROW(make_fit(load, {}, 100 * kMegabyte), std::runtime_error);
}

}  // namespace
}  // namespace embertable::bench
