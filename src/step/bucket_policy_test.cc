#include "step/bucket_policy.h"

#include <gtest/gtest.h>

#include "base/cache.h"
#include "base/processor.h"

namespace embertable {
namespace {

bool is_intel() { return processor_kind() == ProcessorKind::kIntel; }

/// A table of 1 KiB a row, so that a bucket of the cache holds `rows_of_cache` rows.
ExpectedUpdate large_table(std::int64_t entries) {
  return {.rows = 1 << 24, .dim = 256, .row_bytes = 1024, .entries = entries, .outputs = entries};
}
std::int64_t rows_of_cache() { return quarter_of_level2_cache() / 1024; }

std::vector<std::int32_t> choose(std::vector<ExpectedUpdate> tables, std::int32_t workers = 1,
                                 std::int64_t bucket_bytes = 0) {
  std::vector<UpdateCut> cuts = {{7, 1}};
  choose_buckets(tables, workers, bucket_bytes, SimdLevel::kAvx2, cuts);
  std::vector<std::int32_t> buckets;
  for (const UpdateCut& cut : cuts) buckets.push_back(cut.buckets);
  return buckets;
}

std::vector<bool> once(std::vector<ExpectedUpdate> tables, SimdLevel level) {
  std::vector<UpdateCut> cuts;
  choose_buckets(tables, 2, 0, level, cuts);
  std::vector<bool> once;
  for (const UpdateCut& cut : cuts) once.push_back(cut.once_ranges > 0);
  return once;
}

TEST(UpdatedBytes, CountsTheRecordAndAPartOfALineForRowWiseSlots) {
  RowBlock rows = {.stride = 48, .slots = 2};
  rows.slot_stride[0] = 48, rows.slot_stride[1] = 1;
  EXPECT_EQ(updated_bytes(rows), 48 * 4 + 8);
}

TEST(ChooseBuckets, ABucketFillsAQuarterOfTheCache) {
  const std::int64_t rows = rows_of_cache();
  EXPECT_EQ(choose({large_table(rows - 1), large_table(rows), large_table(10 * rows)}),
            (std::vector<std::int32_t>{1, 2, 11}));
}

TEST(ChooseBuckets, CountsDistinctRowsAlone) {
  ExpectedUpdate half = large_table(10 * rows_of_cache());
  half.unique_share = 0.5;
  ExpectedUpdate few_rows = large_table(10 * rows_of_cache());
  few_rows.rows = rows_of_cache() / 2;
  EXPECT_EQ(choose({half, few_rows}), (std::vector<std::int32_t>{6, 1}));
}

TEST(ChooseBuckets, OneBucketOfOneIdEachMayBeHalfAsLargeAgain) {
  ExpectedUpdate table = large_table(rows_of_cache() * 3 / 2 - 1);
  EXPECT_EQ(choose({table}), std::vector<std::int32_t>{2});
  table.one_source = true;
  EXPECT_EQ(choose({table}), std::vector<std::int32_t>{1});
  ++table.entries;
  EXPECT_EQ(choose({table}), std::vector<std::int32_t>{2});
}

TEST(ChooseBuckets, TheCallersSizeReplacesThatOfTheCache) {
  EXPECT_EQ(choose({large_table(10)}, 1, 1024), std::vector<std::int32_t>{11});
  EXPECT_EQ(choose({large_table(1 << 20)}, 1, 1024), std::vector<std::int32_t>{4096});
}

TEST(ChooseBuckets, SmallTablesHaveOneUnlessTheCallerSaysASize) {
  // 4096 entries of 1000 rows of 32 floats: 125 KiB, and more entries than the rows' half.
  const ExpectedUpdate small = {.rows = 1000,
                                .dim = 32,
                                .row_bytes = 128,
                                .entries = 4096,
                                .outputs = 4096,
                                .one_source = true};
  EXPECT_EQ(choose({small}, 4), std::vector<std::int32_t>{1});
  ExpectedUpdate two_sources = small;
  two_sources.one_source = false;
  EXPECT_EQ(choose({two_sources}, 4), std::vector<std::int32_t>{4});
  EXPECT_EQ(choose({small}, 4, 12800), std::vector<std::int32_t>{11});
  ExpectedUpdate multi_hot = small;
  multi_hot.entries = 50 * small.outputs;
  EXPECT_EQ(choose({multi_hot}, 16),
            std::vector<std::int32_t>{63});  // a bucket has 16 rows or more
}

TEST(ChooseBuckets, ABucketHasAtMostEightThousandEntriesWhateverRowsTheyName) {
  // All entries name 2048 rows of 16 bytes: one bucket by the cache.
  ExpectedUpdate narrow = {.rows = 2048, .dim = 4, .row_bytes = 16, .outputs = 1 << 20};
  std::vector<ExpectedUpdate> tables;
  for (const std::int64_t entries : {8191, 8192, 100'000, 1 << 20}) {
    narrow.entries = entries;
    tables.push_back(narrow);
  }
  tables.push_back(narrow);
  tables.back().rows = 40;
  EXPECT_EQ(choose(tables), (std::vector<std::int32_t>{1, 2, 13, 129, 3}));
  tables.back().one_source = true;  // neither listed nor counted, were it for one bucket
  EXPECT_EQ(choose({tables.back()}), std::vector<std::int32_t>{1});
}

TEST(ChooseBuckets, NoTableNeedHoldAWorkersShareInOneBucket) {
  // All entries name 2048 rows of 16 bytes: 4 buckets for each of 8 workers.
  const ExpectedUpdate narrow = {
      .rows = 2048, .dim = 4, .row_bytes = 16, .entries = 1 << 16, .outputs = 1 << 16};
  EXPECT_EQ(choose({narrow}, 8), std::vector<std::int32_t>{32});
  ExpectedUpdate few_groups = narrow;
  few_groups.rows = 40;
  ExpectedUpdate few_entries = narrow;
  few_entries.entries = 3000;
  EXPECT_EQ(choose({few_groups}, 8), std::vector<std::int32_t>{3});
  EXPECT_EQ(choose({few_entries}, 8), std::vector<std::int32_t>{2});
}

TEST(ChooseBuckets, SetRowsNamedOnceApartWhereManyAre) {
  ExpectedUpdate few = large_table(1 << 16), some = few, many = few, short_batch = few, each = few,
                 tiles = few;
  few.once_share = 0.19, some.once_share = 0.2, many.once_share = 0.5;
  short_batch.once_share = 1, short_batch.entries = 2047;
  each.once_share = 1, each.rows_alone = false;
  tiles.once_share = 1, tiles.fused = false;
  EXPECT_EQ(once({few, some, many, short_batch, each, tiles}, SimdLevel::kAvx2),
            (std::vector<bool>{false, false, true, false, false, false}));
  EXPECT_EQ(once({few, some, many, short_batch, each, tiles}, SimdLevel::kAvx512),
            (std::vector<bool>{false, is_intel(), true, false, false, false}));
}

TEST(ChooseBuckets, SetShortBatchesApartFromTwoThousandEntriesOn) {
  ExpectedUpdate table = large_table(2048);
  table.once_share = 1;
  EXPECT_EQ(once({table}, SimdLevel::kAvx2), std::vector<bool>{true});
}

TEST(ChooseBuckets, LeaveASingleBucketOfOneIdEachInTheOrderOfItsOutputRows) {
  ExpectedUpdate table = {.rows = 1 << 20,
                          .dim = 8,
                          .row_bytes = 40,
                          .entries = 4096,
                          .once_share = 1,
                          .outputs = 4096,
                          .one_source = true};
  // Alone, it has buckets for both workers. Beside seven of its kind it has one.
  EXPECT_EQ(once({table}, SimdLevel::kAvx2), std::vector<bool>{true});
  EXPECT_EQ(once(std::vector(8, table), SimdLevel::kAvx2), std::vector<bool>(8, false));
  table.one_source = false;
  EXPECT_EQ(once(std::vector(8, table), SimdLevel::kAvx2), std::vector<bool>(8, true));
}

TEST(ChooseBuckets, AreNotRoundedUpForTheSakeOfBalance) {
  // Two workers should have eight buckets: two for each of four tables, one for each of eight.
  const std::int64_t rows = rows_of_cache();
  EXPECT_EQ(choose(std::vector(4, large_table(rows)), 2), std::vector<std::int32_t>(4, 2));
  EXPECT_EQ(choose(std::vector(8, large_table(rows - 1)), 2), std::vector<std::int32_t>(8, 1));
  // A step that fills no bucket of the least size is cut finely.
  const std::int64_t least = (32 << 10) / 1024;
  EXPECT_EQ(choose(std::vector(4, large_table(least)), 2), std::vector<std::int32_t>(4, 2));
}

TEST(OnceRunEntries, GiveEveryWorkerFourRuns) {
  EXPECT_EQ(once_run_entries(0, 2), 512);
  EXPECT_EQ(once_run_entries(10'000, 2), 1250);
  EXPECT_EQ(once_run_entries(10'000, 16), 512);
  EXPECT_EQ(once_run_entries(1 << 20, 2), 4096);
}

TEST(ChooseBuckets, SetWideRecordsApartWhereGradientsAreReadAgain) {
  ExpectedUpdate one_each = large_table(1 << 16);
  one_each.once_share = 1, one_each.one_source = true, one_each.row_bytes = 256;
  ExpectedUpdate narrow = one_each, several_each = one_each, several_sources = one_each;
  narrow.row_bytes = 255;
  several_each.outputs = one_each.entries / 2;
  several_sources.one_source = false;
  EXPECT_EQ(once({one_each, narrow, several_each, several_sources}, SimdLevel::kAvx512),
            (std::vector<bool>{is_intel(), true, true, true}));
}

/// Returns by how many ranges rows named once of each table are set apart.
std::vector<std::int32_t> ranges_of(std::vector<ExpectedUpdate> tables) {
  std::vector<UpdateCut> cuts;
  choose_buckets(tables, 2, 0, SimdLevel::kAvx512, cuts);
  std::vector<std::int32_t> ranges;
  for (const UpdateCut& cut : cuts) ranges.push_back(cut.once_ranges);
  return ranges;
}

TEST(ChooseBuckets, SetNarrowRowsOfLargeTablesApartByRanges) {
  const std::int32_t many = fetches_through_level2() ? 16 : 1;
  const ExpectedUpdate narrow = {.rows = 1 << 24,
                                 .dim = 32,
                                 .row_bytes = 384,
                                 .host_bytes = 384 << 20,
                                 .entries = 1 << 16,
                                 .once_share = 1,
                                 .outputs = 1024};
  ExpectedUpdate small = narrow, wide = narrow, rounded = narrow, few_samples = narrow;
  small.host_bytes -= 1, wide.row_bytes = 385, rounded.rounds = true, few_samples.outputs = 1023;
  EXPECT_EQ(ranges_of({narrow, small, wide, rounded, few_samples}),
            (std::vector<std::int32_t>{many, 1, 1, 1, 1}));
}

TEST(ChooseBuckets, SetRowsApartByRangesThoughTheirGradientsAreReadAgainIfTheTableIsVeryLarge) {
  const std::int32_t many = fetches_through_level2() ? 16 : 1;
  const ExpectedUpdate large = {.rows = 1 << 24,
                                .dim = 33,
                                .row_bytes = 256,
                                .host_bytes = std::int64_t{2} << 30,
                                .entries = 1 << 16,
                                .once_share = 1,
                                .outputs = 1 << 11,
                                .one_source = true};
  ExpectedUpdate smaller = large, one_each = large, many_gradients = large, sources = large;
  smaller.host_bytes -= 1;
  one_each.host_bytes = 384 << 20, one_each.outputs = one_each.entries;
  many_gradients.outputs = 2 * 4 * quarter_of_level2_cache() / (33 * 4) + 1;
  many_gradients.entries = 2 * many_gradients.outputs;
  sources.one_source = false;
  EXPECT_EQ(ranges_of({large, smaller, one_each, many_gradients, sources}),
            (std::vector<std::int32_t>{many, 1, is_intel() ? 16 : 0, 1, 1}));
}

TEST(ChooseBuckets, HoldTheRowsThatAreNotSetApart) {
  // Half of the entries are of rows named once, of which four fifths are expected to be set apart;
  // the others name a quarter as many rows: 0.1 + 0.125 rows an entry are left.
  ExpectedUpdate table = large_table(100 * rows_of_cache());
  table.once_share = 0.5, table.unique_share = 0.625;
  EXPECT_EQ(choose({table}), std::vector<std::int32_t>{23});
}

TEST(OnceParts, FollowTheShareOfAllEntries) {
  EXPECT_EQ(once_parts(100, 100, 1), 1);
  EXPECT_EQ(once_parts(100, 100, 16), 16);
  EXPECT_EQ(once_parts(10, 80, 2), 1);
  EXPECT_EQ(once_parts(0, 0, 2), 1);
}

TEST(OnceSlotBits, AreForFourSlotsAnEntry) {
  EXPECT_EQ(once_slot_bits(1), 9);
  EXPECT_EQ(once_slot_bits(1024), 12);
  EXPECT_EQ(once_slot_bits(1025), 13);
  EXPECT_EQ(once_slot_bits(std::int64_t{1} << 31), 31);
}

TEST(LookupItemFloats, FollowTheWorkersWithinBounds) {
  EXPECT_EQ(lookup_item_floats(1 << 10, 2), 1 << 15);
  EXPECT_EQ(lookup_item_floats(1 << 20, 2), 1 << 16);
  EXPECT_EQ(lookup_item_floats(std::int64_t{1} << 40, 2), 1 << 18);
}

TEST(OutweighsItsWorker, FromHalfOfAWorkersShareOn) {
  EXPECT_TRUE(outweighs_its_worker(5000, 312, 8, 5000 * 8 * 2 * 4, 4));
  EXPECT_FALSE(outweighs_its_worker(5000, 313, 8, 5000 * 8 * 2 * 4, 4));
  EXPECT_FALSE(outweighs_its_worker(5000, 312, 8, 5000 * 8 * 2 * 4 + 1, 4));
  EXPECT_FALSE(outweighs_its_worker(4095, 1, 8, 4095 * 8, 4));
  EXPECT_FALSE(outweighs_its_worker(5000, 1, 8, 5000 * 8, 1));
}

TEST(GradientsStayNear, IfTheyAreFewAndReadAgainAndAgain) {
  const std::int64_t outputs = 3 * quarter_of_level2_cache() / (2 * 32 * 4);
  EXPECT_EQ(gradients_stay_near(8 * outputs, outputs, 32, 2), !is_intel());
  EXPECT_FALSE(gradients_stay_near(8 * outputs - 1, outputs, 32, 2));
  EXPECT_FALSE(gradients_stay_near(8 * outputs, outputs, 32, 3));
  EXPECT_FALSE(gradients_stay_near(9 * outputs, outputs + 1, 32, 2));
  EXPECT_FALSE(gradients_stay_near(8 * outputs, outputs, 33, 2));
}

TEST(TableOrderOf, IsReversedWhereRowsDoNotFitIntoTheSecondLevelCaches) {
  const std::int64_t floats = 2 * 4 * quarter_of_level2_cache() / std::int64_t{sizeof(float)};
  EXPECT_EQ(table_order(floats, 2), TableOrder::kFirstToLast);
  EXPECT_EQ(table_order(floats + 1, 2), TableOrder::kLastToFirst);
  EXPECT_EQ(table_order(floats + 1, 3), TableOrder::kFirstToLast);
}

TEST(OwnScratchEntries, AreAWorkersShareOfAllOrSixteenThousand) {
  EXPECT_EQ(own_scratch_entries(1 << 20, 1), 1 << 20);
  EXPECT_EQ(own_scratch_entries(1 << 20, 4), 1 << 18);
  EXPECT_EQ(own_scratch_entries(1 << 20, 128), 1 << 14);
}

}  // namespace
}  // namespace embertable
