#include "step/bucket_policy.h"

#include <algorithm>

#include "base/cache.h"
#include "base/entries.h"
#include "base/processor.h"

namespace embertable {
namespace {

/// Number of buckets, or of runs of rows named once, that every worker should have, so that workers
/// finish together.
constexpr std::int64_t kUpdatesOfWorker = 4;

bool is_intel() { return processor_kind() == ProcessorKind::kIntel; }

/// Whether every output row of the only source has one entry, so that no gradient is read twice.
bool has_one_each(const ExpectedUpdate& table) {
  return table.one_source && table.entries == table.outputs;
}

/// Returns the most ranges of neighbours by which rows named once are set apart. The rows of a
/// range lie close together, so that the tables of their pages' addresses stay in a cache. That
/// pays for large tables of narrow rows, where little but the rows is waited for, on processors
/// that fetch them into the second-level cache. Lists beyond that number take longer to write.
std::int32_t once_ranges(const ExpectedUpdate& table) {
  constexpr std::int32_t kRanges = 16;
  constexpr std::int64_t kMostRowBytes = 384, kLeastOutputs = 1024;
  constexpr std::int64_t kLarge = std::int64_t{384} << 20, kVeryLarge = std::int64_t{2} << 30;
  constexpr std::int64_t kNarrowGradient = 128, kCaches = 2;
  if (!fetches_through_level2() || table.rounds || table.row_bytes > kMostRowBytes ||
      table.outputs < kLeastOutputs)
    return 1;
  // Entries of a sample come apart, and each range reads its gradient again.
  const std::int64_t gradient = table.dim * static_cast<std::int64_t>(sizeof(float));
  if (gradient <= kNarrowGradient || has_one_each(table))
    return table.host_bytes >= kLarge ? kRanges : 1;
  const bool gradients_stay =
      table.one_source && table.outputs * gradient <= kCaches * 4 * quarter_of_level2_cache();
  return gradients_stay && table.host_bytes >= kVeryLarge ? kRanges : 1;
}

/// Returns what is left for buckets where rows named once are set apart, of which a fifth are not
/// recognized.
ExpectedUpdate without_once(ExpectedUpdate table) {
  constexpr double kRecognized = 0.8;
  const double apart = kRecognized * table.once_share;
  const double left = static_cast<double>(table.entries) * (1 - apart);
  table.unique_share = std::max(table.unique_share - apart, 0.0) / (1 - apart);
  table.entries = static_cast<std::int64_t>(left);
  table.one_source = false;  // entries are listed
  return table;
}

/// Returns the bytes of the distinct rows that a table's entries are expected to name.
double expected_bytes(const ExpectedUpdate& table) {
  const double unique = std::min(static_cast<double>(table.entries) * table.unique_share,
                                 static_cast<double>(table.rows));
  return unique * static_cast<double>(table.row_bytes);
}

/// Returns the number of groups of 16 rows, which stay together in one bucket.
std::int64_t most_buckets(const ExpectedUpdate& table) { return table.rows / 16 + 1; }

/// Returns a number of buckets that are each grouped in half a MiB, whatever rows they name.
std::int64_t buckets_for_grouping(const ExpectedUpdate& table) {
  constexpr std::int64_t kMostEntries = 8192;
  return std::min(table.entries / kMostEntries + 1, most_buckets(table));
}

/// Returns a number of buckets at which none needs to hold half of a worker's share of a step's
/// entries, and not so many that each has few entries.
std::int64_t buckets_for_balance(const ExpectedUpdate& table, std::int64_t all_entries,
                                 std::int32_t workers) {
  constexpr std::int64_t kLeastEntries = 1024;
  if (all_entries == 0) return 1;
  return std::min({table.entries * kUpdatesOfWorker * workers / all_entries, most_buckets(table),
                   table.entries / kLeastEntries});
}

/// What is common to the buckets of one step.
struct BucketSize {
  double bytes = 0;       ///< rows and slots of a bucket
  bool is_given = false;  ///< by the caller
  bool is_cache = false;  ///< what a worker's cache holds
  double rounded_up = 1;  ///< 1: no bucket is larger; 0.5: tables have the nearest number
  std::int64_t all_entries = 0;
  std::int32_t workers = 1;
};

/// Returns the size that is given unless that is 0, else what a worker's cache holds, or less if
/// workers would have few buckets.
BucketSize size_buckets(std::span<const ExpectedUpdate> tables, std::int32_t workers,
                        std::int64_t given) {
  constexpr double kLeast = 32 << 10;
  BucketSize size = {.workers = workers};
  double all_bytes = 0;
  for (const ExpectedUpdate& table : tables) {
    size.all_entries += table.entries;
    all_bytes += expected_bytes(table);
  }
  const auto cache = static_cast<double>(quarter_of_level2_cache());
  const double share = all_bytes / static_cast<double>(kUpdatesOfWorker * workers);
  size.is_given = given > 0;
  size.is_cache = !size.is_given && (workers == 1 || share >= cache);
  if (size.is_given) {
    size.bytes = static_cast<double>(given);
  } else if (size.is_cache) {
    size.bytes = cache;
  } else {
    // Workers end together if buckets are somewhat larger too, and fewer lists are faster to write.
    // Buckets of the least size are so few that workers would end apart.
    size.rounded_up = share < kLeast ? 1 : 0.5;
    size.bytes = std::max(share, kLeast);
  }
  return size;
}

/// Returns the number of a table's buckets, if all of its entries go to them.
std::int64_t count_buckets(const ExpectedUpdate& table, const BucketSize& size) {
  constexpr std::int64_t kMostBuckets = 4096;
  const double bytes = expected_bytes(table);
  // One bucket with one id per output row needs neither counts nor entries, which is worth half as
  // much cache again.
  const double slack = has_one_each(table) && size.is_cache ? 1.5 : 1;
  const std::int64_t by_bytes =
      bytes < slack * size.bytes ? 1
                                 : static_cast<std::int64_t>(bytes / size.bytes + size.rounded_up);
  if (size.is_given) return std::min(by_bytes, kMostBuckets);
  const std::int64_t for_grouping = has_one_each(table) ? 1 : buckets_for_grouping(table);
  const std::int64_t for_balance =
      size.workers == 1 ? 1 : buckets_for_balance(table, size.all_entries, size.workers);
  return std::min(std::max({by_bytes, for_grouping, for_balance}), kMostBuckets);
}

/// Whether to set rows named once apart. Few entries would not pay for regions of their own, nor
/// would those of a single bucket that needs no counts and no entries. A rule that steps tiles
/// fetches their rows 16 at once, so that it had better find them in the cache that grouping
/// fetched them into. Where no gradient is read twice, sample order spares nothing: a single
/// bucket, which needs no counts and no entries, is faster, and so are several of wide records,
/// except on Intel's processors, which gain by ranges of neighbours.
bool sets_once_apart(const ExpectedUpdate& table, const BucketSize& size, SimdLevel level) {
  constexpr std::int64_t kLeastEntries = 2048, kWideBytes = 256;
  if (!table.rows_alone || !table.fused || table.entries < kLeastEntries ||
      table.once_share < least_once_share(level))
    return false;
  if (!has_one_each(table)) return true;
  return count_buckets(table, size) > 1 && (is_intel() || table.row_bytes < kWideBytes);
}

}  // namespace

std::int64_t updated_bytes(const RowBlock& rows) {
  constexpr std::int64_t kRowWiseSlotBytes = 8;
  std::int64_t bytes = rows.stride * rows.element_bytes();
  for (std::int32_t slot = 0; slot < rows.slots; ++slot)
    bytes += rows.slot_stride[slot] == 1 ? kRowWiseSlotBytes : 0;
  return bytes;
}

bool is_small_table(std::int64_t rows, std::int64_t dim, std::int64_t entries,
                    std::int64_t outputs) {
  return rows * dim * static_cast<std::int64_t>(sizeof(float)) <= kSideBySideBytes / 2 &&
         entries * 2 >= rows && entries <= outputs && outputs <= kPieceRows;
}

void choose_buckets(std::span<const ExpectedUpdate> tables, std::int32_t workers,
                    std::int64_t bucket_bytes, SimdLevel level, std::vector<UpdateCut>& cuts) {
  const BucketSize size = size_buckets(tables, workers, bucket_bytes);
  cuts.clear();
  cuts.reserve(tables.size());  // if there is no memory, the list stays empty: not chosen yet
  for (const ExpectedUpdate& table : tables) {
    if (bucket_bytes == 0 && table.one_source &&
        is_small_table(table.rows, table.dim, table.entries, table.outputs)) {
      cuts.push_back({});
      continue;
    }
    const bool once = sets_once_apart(table, size, level);
    const std::int64_t buckets = count_buckets(once ? without_once(table) : table, size);
    cuts.push_back({static_cast<std::int32_t>(buckets), once ? once_ranges(table) : 0});
  }
}

double least_once_share(SimdLevel level) {
  return level == SimdLevel::kAvx512 && is_intel() ? 0.2 : 0.5;
}

std::int64_t once_run_entries(std::int64_t all_entries, std::int64_t workers) {
  constexpr std::int64_t kLeast = 512, kMost = 4096;
  return std::clamp(all_entries / (kUpdatesOfWorker * workers), kLeast, kMost);
}

std::int64_t once_parts(std::int64_t entries, std::int64_t all_entries, std::int64_t workers) {
  if (all_entries == 0) return 1;
  const std::int64_t fair = (2 * entries * workers + all_entries) / (2 * all_entries);
  return std::clamp<std::int64_t>(fair, 1, workers);
}

int once_slot_bits(std::int64_t entries) {
  constexpr int kLeast = 9, kMost = 31;
  int bits = kLeast;
  while (bits < kMost && (std::int64_t{1} << bits) < 4 * entries) ++bits;
  return bits;
}

bool reads_through_level2(double unique_share) {
  constexpr double kLeastShare = 0.3;
  return unique_share >= kLeastShare && fetches_through_level2();
}

std::int64_t tables_side_by_side(std::int64_t small_tables, std::int64_t workers,
                                 std::int64_t most) {
  constexpr std::int64_t kRunsOfWorker = 2;
  return std::clamp<std::int64_t>(small_tables / (kRunsOfWorker * workers), 1, most);
}

std::int64_t lookup_item_floats(std::int64_t all_floats, std::int64_t workers) {
  constexpr std::int64_t kItemsOfWorker = 8, kLeast = 1 << 15, kMost = 1 << 18;
  return std::clamp(all_floats / (workers * kItemsOfWorker), kLeast, kMost);
}

std::int64_t large_bucket_entries(std::int64_t all_entries, std::int64_t workers) {
  constexpr std::int64_t kItemsOfWorker = 16;
  return all_entries / (workers * kItemsOfWorker);
}

bool gradients_stay_near(std::int64_t entries, std::int64_t outputs, std::int64_t dim,
                         std::int64_t workers) {
  constexpr std::int64_t kReads = 4;
  const std::int64_t bytes = outputs * dim * std::int64_t{sizeof(float)};
  return !is_intel() && entries >= kReads * workers * outputs &&
         bytes <= quarter_of_level2_cache() * 3 / 2;
}

bool lookups_may_burst() { return !is_intel(); }
bool updates_may_burst() { return processor_kind() == ProcessorKind::kZen4; }

TableOrder table_order(std::int64_t floats, std::int64_t workers) {
  const std::int64_t caches = workers * 4 * quarter_of_level2_cache();
  return floats * std::int64_t{sizeof(float)} > caches ? TableOrder::kLastToFirst
                                                       : TableOrder::kFirstToLast;
}

std::int64_t own_scratch_entries(std::int64_t all_entries, std::int64_t workers) {
  constexpr std::int64_t kLeast = 1 << 14;  // somewhat over 1 MiB
  return std::max(all_entries / workers, kLeast);
}

bool outweighs_its_worker(std::int64_t entries, std::int64_t pieces, std::int64_t dim,
                          std::int64_t all_floats, std::int64_t workers) {
  constexpr std::int64_t kFewEntries = 4096;  // one worker sums them as fast as several
  constexpr std::int64_t kEntriesOfPiece = 16;
  return workers > 1 && entries >= kFewEntries && entries >= pieces * kEntriesOfPiece &&
         entries * dim * 2 * workers >= all_floats;
}

std::int64_t untouched_run_rows(std::int64_t dim) {
  constexpr std::int64_t kFloats = 1 << 16;
  return std::max<std::int64_t>(kFloats / dim, 1);
}

}  // namespace embertable
