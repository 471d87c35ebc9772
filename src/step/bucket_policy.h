#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "base/rows.h"
#include "kernels/level.h"

// Every size and threshold by which the work of lookups and updates is cut into pieces. They affect
// the speed of a step, and never its results.
namespace embertable {

/// Distinct rows, and rows that only one entry names, per entry of a table's last update that had
/// entries, 0..1; and the entries that the last training step looked up. They are expected of the
/// next one. Any thread may read them.
struct NamedShares {
  std::atomic<double> unique = 1;
  std::atomic<double> once = 0;
  std::atomic<std::int64_t> entries = 0;  ///< counts those of all sources
};

/// A table's update as far as it is known before its entries are read.
struct ExpectedUpdate {
  std::int64_t rows = 0;        ///< rows of the whole table
  std::int64_t dim = 0;         ///< floats per row
  std::int64_t row_bytes = 0;   ///< updated_bytes of a row
  std::int64_t host_bytes = 0;  ///< row_bytes of all rows that a host holds
  bool rounds = false;          ///< rows are rounded when they step
  std::int64_t entries = 0;     ///< expected from all sources
  double unique_share = 1;      ///< distinct rows per entry, 0..1
  double once_share = 0;        ///< rows that only one entry names, per entry, 0..1
  std::int64_t outputs = 0;     ///< most output rows of one source
  bool one_source = false;      ///< all entries come from one feature of one core
  bool rows_alone = true;       ///< a row steps once, by the sum of its gradients, if it is named
  bool fused = true;            ///< the rule has a form that is fused with the sum
};

/// How a table's update is cut.
struct UpdateCut {
  std::int32_t buckets = 1;
  /// The most ranges of neighbours by which rows that only one entry names are set apart from
  /// buckets: see OnceRows. 0: they are not set apart.
  std::int32_t once_ranges = 0;
  bool operator==(const UpdateCut&) const = default;
};

/// Returns the bytes that the update of one row reads and writes: its record, and for each row-wise
/// slot part of a cache line, which no other row of the step may need.
std::int64_t updated_bytes(const RowBlock& rows);

/// Chooses the number of buckets of each table's update, so that a bucket's rows and slots fill a
/// quarter of a worker's level 2 cache, its entries are grouped in that cache and workers end
/// together, and whether and by how many ranges rows named once are set apart. bucket_bytes:
/// replaces that size unless 0. `cuts` is overwritten; no memory is taken if its capacity suffices.
void choose_buckets(std::span<const ExpectedUpdate> tables, std::int32_t workers,
                    std::int64_t bucket_bytes, SimdLevel level, std::vector<UpdateCut>& cuts);

/// Returns the least share of entries of rows named once from which it pays to set them apart. What
/// that costs every entry is less where vectors compare 16 of them at a time, and it spares more on
/// Intel's processors.
double least_once_share(SimdLevel level);

/// Returns the most entries of rows named once that one item updates: so few that workers end
/// together.
std::int64_t once_run_entries(std::int64_t all_entries, std::int64_t workers);

/// Returns the number of parts that the search for a table's rows named once is cut into, each for
/// one worker. 1: one worker does all of it.
std::int64_t once_parts(std::int64_t entries, std::int64_t all_entries, std::int64_t workers);

/// Most parts that have a filter each; all filters of a table are joined, so that more parts would
/// cost each entry more.
inline constexpr std::int64_t kMostOnceFilters = 8;

/// Returns the logarithm of the number of slots that tell a table's rows named once: at least four
/// slots for each entry, so that few rows share one.
int once_slot_bits(std::int64_t entries);

/// Whether rows to be read are fetched into the second-level cache, on processors where that pays:
/// not where a step names few distinct rows, which are in a cache already.
bool reads_through_level2(double unique_share);

/// Whether a table with one source is small enough for one bucket: its output rows have at most one
/// entry on average. If each has one, such a table is updated with one accumulator per row, without
/// grouping.
bool is_small_table(std::int64_t rows, std::int64_t dim, std::int64_t entries,
                    std::int64_t outputs);

/// Maximum bytes of the accumulators of small tables that are updated side by side.
inline constexpr std::int64_t kSideBySideBytes = 256 << 10;

/// Returns how many small tables one worker updates side by side: several if that leaves enough
/// runs of them for every worker.
std::int64_t tables_side_by_side(std::int64_t small_tables, std::int64_t workers,
                                 std::int64_t most);

/// Floats that a lookup item moves: enough that a change of items costs little, and few enough that
/// workers end together.
std::int64_t lookup_item_floats(std::int64_t all_floats, std::int64_t workers);

/// Minimum number of output rows of a lookup item.
inline constexpr std::int64_t kLeastLookupRows = 16;

/// Floats of a gradient that one item copies or checks.
inline constexpr std::int64_t kGradientTileFloats = 1 << 15;

/// Returns the number of entries from which a bucket counts as large: large buckets are updated
/// first.
std::int64_t large_bucket_entries(std::int64_t all_entries, std::int64_t workers);

/// Whether the gradients of a table's output rows are probably in a worker's second-level cache
/// while it updates a bucket of grouped entries: they fill at most three eighths of it, and each is
/// read four times or more by each of the workers that share the table. To fetch them ahead of
/// their sums would only be more to do. False on Intel's processors, where it made no difference.
bool gradients_stay_near(std::int64_t entries, std::int64_t outputs, std::int64_t dim,
                         std::int64_t workers);

/// Whether lookups of rows of bfloat16, and fused updates, may be faster if rows are fetched in
/// bursts, so that tables find out by the clock. Lookups: not on Intel's processors, where none of
/// W1 to W6 gained more than 3 %. Updates: on AMD's Zen 4 alone; on Intel's they took up to 1.5
/// times as long.
bool lookups_may_burst();
bool updates_may_burst();

enum class TableOrder { kFirstToLast, kLastToFirst };

/// Returns the order in which tables are updated, by the floats of the rows that all entries name,
/// repeated rows counted again. Lookups go from the first table to the last. If that is more than
/// the second-level caches of all workers hold, a cache further away may still have rows of the
/// last tables when the update begins, and those of the first ones when the next lookups do.
TableOrder table_order(std::int64_t floats, std::int64_t workers);

/// Returns the number of entries that each worker has memory of its own for. Larger buckets get
/// memory by themselves, so that what all workers group in is bounded by the step's entries, not by
/// workers times the largest bucket.
std::int64_t own_scratch_entries(std::int64_t all_entries, std::int64_t workers);

/// Whether a bucket would keep one worker busy for half of its share of the step or more, so that
/// it is worth looking for rows of it whose gradients several workers sum. Their sums take memory
/// for each piece, so that there must be several entries for each.
bool outweighs_its_worker(std::int64_t entries, std::int64_t pieces, std::int64_t dim,
                          std::int64_t all_floats, std::int64_t workers);

/// Rows of a table that one item steps where a rule steps rows that no entry names.
std::int64_t untouched_run_rows(std::int64_t dim);

}  // namespace embertable
