#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "base/memory.h"
#include "kernels/hot_row.h"
#include "kernels/level.h"
#include "step/table_update.h"
#include "step/workers.h"

namespace embertable {

/// A bucket in which few rows have many of the entries. Several workers sum the gradients of these
/// rows, cut by runs of pieces and by columns, which does not affect result bits, but for which NaN
/// a NaN is; the worker that updates the bucket adds up the pieces. Its memory is reused.
class HotBucket {
 public:
  static constexpr std::int32_t kMostRows = 8;

  /// Looks for such rows in a sample of a bucket's entries: each has an eighth of it or more. The
  /// bucket has the entries first <= i < first + count of the plan. Returns false if there is none.
  /// `table` accumulates and is borrowed until the bucket is updated.
  bool find(const TableUpdate& table, std::int64_t first, std::int64_t count);

  /// Cuts the sums for `workers` workers.
  void cut(std::int32_t workers);

  /// Returns the number of parts of the sums. Different parts may be summed at once; `update`
  /// requires that all are summed.
  std::int64_t parts() const noexcept { return rows_ * runs_ * blocks_; }
  void sum_part(std::int64_t part, SimdLevel level) noexcept;

  /// Returns the maximum number of parts of this bucket, whichever of its rows are found.
  std::int64_t most_parts() const noexcept { return most_parts_; }

  /// Gradient floats of the whole bucket.
  std::int64_t floats() const noexcept { return count_ * table_->rows.dim; }

  /// Entries of the hot rows.
  std::int64_t entries() const noexcept;

  /// Applies the rule to the hot rows, and marks them where rows are marked.
  void update(float* wide, SimdLevel level) noexcept;

  /// Copies the other entries into separate arrays: see LeaveOut. Returns their number.
  template <class Index>
  std::int64_t take_others(Index* row, std::uint32_t* out, float* gain, SimdLevel level) const;

  std::int32_t rows() const noexcept { return rows_; }

  std::int64_t bytes() const noexcept {
    return sums_.bytes() + static_cast<std::int64_t>(found_.capacity() * sizeof(std::uint32_t));
  }

 private:
  template <class Index>
  EntryList<Index> all() const;
  template <class Index>
  bool find_as();
  template <class Index>
  void sum_part_as(std::int64_t part, SimdLevel level) noexcept;

  std::int64_t at(std::int64_t hot, std::int64_t piece) const { return hot * pieces_ + piece; }
  float* sum_of(std::int64_t hot, std::int64_t piece);
  float* total_of(std::int64_t hot);

  const TableUpdate* table_ = nullptr;
  std::int64_t first_ = 0, count_ = 0;  ///< entries of the bucket in the plan
  std::int32_t rows_ = 0;
  std::uint64_t row_[kMostRows] = {};
  std::int64_t pieces_ = 0, runs_ = 0, blocks_ = 0, most_parts_ = 0;
  Mapping sums_;                      ///< [rows, pieces, padded(dim)] floats, of kMostRows
  std::vector<std::uint32_t> found_;  ///< [rows, pieces]: entries; where 0 there is no sum
};

/// The buckets of one update in which few rows have many of the entries. The gradients of those
/// rows are summed by all workers before the buckets are updated. Its memory is reused.
class HotRows {
 public:
  /// Forgets all buckets.
  void clear() noexcept { buckets_in_use_ = 0; }

  /// Looks for hot rows in a bucket of entries first <= i < first + count of the plan, and keeps it
  /// if it has some. Returns null if it has none, else an object that is valid until `clear`.
  /// `table` accumulates and is borrowed until then.
  HotBucket* find(const TableUpdate& table, std::int64_t first, std::int64_t count);

  /// Sums the gradients of the hot rows of all kept buckets. Returns how many workers took part.
  std::int32_t sum(Workers& workers, SimdLevel level);

  std::int64_t bytes() const noexcept;

 private:
  struct Part {
    HotBucket* bucket = nullptr;
    std::int64_t part = 0;
  };

  std::deque<HotBucket> buckets_;  ///< buckets beyond buckets_in_use_ keep memory for later updates
  std::size_t buckets_in_use_ = 0;
  std::vector<Part> parts_;
};

}  // namespace embertable
