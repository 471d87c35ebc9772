#pragma once

#include <cstdint>

#include "embertable/batch.h"
#include "embertable/config.h"
#include "kernels/level.h"
#include "rows/plan.h"

namespace embertable {

struct FeatureSpec;

namespace input {

/// The entries of one feature in one batch: the caller's arrays, and where their checked copies go.
/// Borrowed.
struct EntryCopy {
  IntegerSpan ids;    ///< [nnz]
  FloatSpan weights;  ///< [nnz] where `weighted`, else every weight is 1
  bool weighted = false;
  const FeatureSpec* spec = nullptr;
  Combiner combiner = Combiner::kSum;  ///< kSum for one id per output row, else that of the spec

  /// Its rows and counts are written tile by tile; of the next arrays it has those that are needed,
  /// once all tiles are read.
  LookupPlan plan;
  float* weight = nullptr;        ///< [nnz] where `weighted`
  std::int64_t* split = nullptr;  ///< [outputs + 1]
  float* denominator = nullptr;   ///< [outputs], not for kSum
  std::uint32_t buckets = 0;      ///< 0: entries are not counted
};

/// Result of one work item, the output rows first <= i < last. Its entries are at begin .. begin +
/// kept of the copies; they adjoin those of the tile before only after all tiles are read. Has
/// cache lines of its own.
struct alignas(64) EntryTile {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t begin = 0;
  std::int64_t end = -1;  ///< end of the entries that were read; -1: the tile was not read
  std::int64_t kept = 0;
  std::int64_t dropped = 0;
  std::int64_t truncated = 0;
  std::int64_t empty = 0;       ///< output rows without entries
  std::int64_t bad_entry = -1;  ///< first of the ids outside the table, or -1
  std::int64_t bad_split = -1;  ///< first split that is less than the one before it, or -1
  SimdLevel level = SimdLevel::kScalar;
  bool in_order = true;       ///< sparse: entries are where they belong, and within the dense shape
  bool one_hot = false;       ///< each output row has exactly one entry
  bool plain_weights = true;  ///< all weights are 1
  bool plain_denominators = true;    ///< all denominators are 1
  bool zero_denominators = false;    ///< some denominator is 0
  bool split_written = false;        ///< else one_hot
  bool denominator_written = false;  ///< else plain_denominators

  std::int64_t outputs() const { return last - first; }
};

/// Copies the entries of one tile, in canonical order. Used by one thread.
class EntryWriter {
 public:
  /// The copies start at entry `begin`; those of the tiles before end there or earlier.
  EntryWriter(const EntryCopy& copy, EntryTile& tile, std::int64_t begin, SimdLevel level);

  /// Returns the place of the next entry if all ids are within the table.
  std::int64_t next() const { return tile_.begin + taken_; }

  /// Takes the caller's entries first .. first + count.
  void take(std::int64_t first, std::int64_t count) {
    if (first != run_first_ + run_count_) {
      copy_run();
      run_first_ = first;
    }
    run_count_ += count;
    taken_ += count;
  }

  /// `one_hot`: each output row has one entry, and splits need not be written. Otherwise
  /// split[tile.first .. tile.last) has been written for the entries taken. Computes denominators
  /// and counts.
  void finish(std::int64_t tile_index, bool one_hot);

 private:
  void copy_run();
  void drop_outsiders();
  bool splits_rise_by_1() const;
  void write_denominators();

  const EntryCopy& copy_;
  EntryTile& tile_;
  SimdLevel level_;
  std::int64_t taken_ = 0;
  std::int64_t copied_ = 0;
  std::int64_t run_first_ = 0;
  std::int64_t run_count_ = 0;
};

/// Counts the entries of a tile by bucket. Requires: they are counted.
void count_tile(const EntryCopy& copy, const EntryTile& tile, std::int64_t tile_index,
                SimdLevel level);

/// Writes split[i] for the output rows of a tile that has one entry in each.
void write_one_hot_splits(const EntryCopy& copy, EntryTile& tile);

}  // namespace input
}  // namespace embertable
