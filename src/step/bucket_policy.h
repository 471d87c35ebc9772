#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/rows.h"

// Every size and threshold by which the work of lookups and updates is cut into pieces. They affect
// the speed of a step, and never its results.
namespace embertable {

/// A table's update as far as it is known before its entries are read.
struct ExpectedUpdate {
  std::int64_t rows = 0;       ///< rows of the whole table
  std::int64_t dim = 0;        ///< floats per row
  std::int64_t row_bytes = 0;  ///< updated_bytes of a row
  std::int64_t entries = 0;    ///< expected from all sources
  double unique_share = 1;     ///< distinct rows per entry, 0..1
  std::int64_t outputs = 0;    ///< most output rows of one source
  bool one_source = false;     ///< all entries come from one feature of one replica
};

/// Returns the bytes that the update of one row reads and writes: its record, and for each row-wise
/// slot part of a cache line, which no other row of the step may need.
std::int64_t updated_bytes(const RowBlock& rows);

/// Chooses the number of buckets of each table's update, so that a bucket's rows and slots fill a
/// quarter of a worker's level 2 cache and workers end together. bucket_bytes: replaces that size
/// unless 0. `buckets` is overwritten; no memory is taken if its capacity suffices.
void choose_buckets(std::span<const ExpectedUpdate> tables, std::int32_t workers,
                    std::int64_t bucket_bytes, std::vector<std::int32_t>& buckets);

/// Whether a table with one source is small enough for one bucket. If every output row has one
/// entry, such a table is updated with one accumulator per row, without grouping.
bool is_small_table(std::int64_t rows, std::int64_t dim, std::int64_t entries,
                    std::int64_t outputs);

/// Maximum bytes of the accumulators of small tables that are updated side by side.
inline constexpr std::int64_t kSideBySideBytes = 256 << 10;

/// Returns how many small tables one worker updates side by side: several if that leaves enough
/// runs of them for every worker.
inline std::int64_t tables_side_by_side(std::int64_t small_tables, std::int64_t workers,
                                        std::int64_t most) {
  constexpr std::int64_t kRunsOfWorker = 2;
  return std::clamp<std::int64_t>(small_tables / (kRunsOfWorker * workers), 1, most);
}

/// Floats that a lookup item moves: enough that a change of items costs little, and few enough that
/// workers end together.
inline std::int64_t lookup_item_floats(std::int64_t all_floats, std::int64_t workers) {
  constexpr std::int64_t kItemsOfWorker = 8, kLeast = 1 << 15, kMost = 1 << 18;
  return std::clamp(all_floats / (workers * kItemsOfWorker), kLeast, kMost);
}

/// Minimum number of output rows of a lookup item.
inline constexpr std::int64_t kLeastLookupRows = 16;

/// Returns the number of entries from which a bucket counts as large: large buckets are updated
/// first.
inline std::int64_t large_bucket_entries(std::int64_t all_entries, std::int64_t workers) {
  constexpr std::int64_t kItemsOfWorker = 16;
  return all_entries / (workers * kItemsOfWorker);
}

/// Whether a bucket would keep one worker busy for half of its share of the step or more, so that
/// it is worth looking for rows of it whose gradients several workers sum.
inline bool outweighs_its_worker(std::int64_t entries, std::int64_t dim, std::int64_t all_floats,
                                 std::int64_t workers) {
  constexpr std::int64_t kFewEntries = 4096;  // one worker sums them as fast as several
  return workers > 1 && entries >= kFewEntries && entries * dim * 2 * workers >= all_floats;
}

/// Rows of a table that one item steps where a rule steps rows that no entry names.
inline std::int64_t untouched_run_rows(std::int64_t dim) {
  constexpr std::int64_t kFloats = 1 << 16;
  return std::max<std::int64_t>(kFloats / dim, 1);
}

}  // namespace embertable
