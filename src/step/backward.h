#pragma once

#include <cstddef>
#include <cstdint>

#include "base/memory.h"
#include "base/rows.h"
#include "kernels/group.h"
#include "kernels/level.h"
#include "kernels/update.h"
#include "rows/plan.h"

namespace embertable {

class HotBucket;

/// Maximum number of entries of one bucket, so that their places and twice as many hashes fit into
/// 32 bits.
inline constexpr std::int64_t kMostGrouped = std::int64_t{1} << 31;

/// The rows of one table on one host, and how a step updates them. Whatever is pointed at is
/// borrowed until the update is done.
struct TableUpdate {
  RowBlock rows;

  /// If false, every entry is a step, those of a row in canonical order; not for small tables.
  bool accumulates = true;
  bool gives_sums = false;  ///< see Rule::gives_sums; the rows' memory may be read-only

  UpdateRows update_rows = nullptr;                     ///< any dim
  UpdateGroups<std::uint32_t> update_groups = nullptr;  ///< or null: see Rule::update_groups
  StepScalars step;                                     ///< set once the gradients have come
  UpdatePlan plan;           ///< where the entries go; empty in a lookup without gradients
  GradientSource gradients;  ///< where the pieces of plan.piece are

  /// If not null, bit r % 16 of touched[r / 16] is set for every row r that an entry names.
  std::uint16_t* touched = nullptr;
};

/// Marks a row of a table where rows are marked.
inline void touch(const TableUpdate& table, std::uint64_t row) noexcept {
  std::uint16_t& rows = table.touched[row / 16];
  rows = static_cast<std::uint16_t>(rows | (1u << (row % 16)));
}

/// Memory for updates by one worker at a time. Grows only between steps, by the `reserve` calls.
class GroupScratch {
 public:
  /// Makes room for update_bucket: buckets of up to `entries` entries, tables up to `dim` wide, row
  /// numbers of 8 bytes if wide. Takes an eighth more, so that the next steps' buckets fit.
  void reserve(std::int64_t entries, bool wide, std::int32_t dim);

  /// Returns the bytes that such buckets need, but for the sums of rows.
  static std::int64_t group_bytes(std::int64_t entries, bool wide);

  /// Does as `reserve`, in memory of the caller's: group_bytes(entries, wide).
  void use(std::byte* memory, std::int64_t entries, bool wide, std::int32_t dim);

  /// Makes room for update_small_tables: `rows` and `floats` are the sums of rows and of rows *
  /// padded(dim) of the tables in a call.
  void reserve_small(std::int64_t rows, std::int64_t floats);

  /// Makes room for a tile of half rows, up to `dim` wide.
  void reserve_wide_rows(std::int32_t dim);

  /// Returns the mapped bytes.
  std::int64_t bytes() const noexcept {
    return groups_.bytes() + sums_.bytes() + wide_rows_.bytes();
  }

  template <class Index>
  GroupMemory<Index> memory() const noexcept {
    return {arrays_, static_cast<Index*>(single_row_), static_cast<Index*>(multi_row_)};
  }

  /// Entries in separate arrays of [entries + 1] each.
  template <class Index>
  Index* row() const noexcept {
    return static_cast<Index*>(row_);
  }
  std::uint32_t* out() const noexcept { return out_; }
  float* gain() const noexcept { return gain_; }

  std::int64_t entries() const noexcept { return entries_; }
  bool wide() const noexcept { return wide_; }

  float* sums() const noexcept { return reinterpret_cast<float*>(sums_.data()); }
  std::int64_t num_sums() const noexcept { return num_sums_; }

  /// Half rows of a tile, as floats.
  float* wide_rows() const noexcept { return reinterpret_cast<float*>(wide_rows_.data()); }

  /// One element for each row in a call of update_small_tables.
  std::uint8_t* touched() const noexcept {
    return reinterpret_cast<std::uint8_t*>(sums_.data()) + num_sums_ * 4;
  }
  std::int64_t num_touched() const noexcept { return num_touched_; }

 private:
  std::int64_t carve(std::byte* memory, std::int64_t entries, bool wide);
  void grow(std::int64_t entries, bool wide);
  void reserve_sums(std::int64_t floats, std::int64_t rows);
  void grow_sums(std::int64_t floats, std::int64_t rows);

  Mapping groups_;
  std::int64_t entries_ = 0;
  bool wide_ = false;
  void *row_ = nullptr, *single_row_ = nullptr, *multi_row_ = nullptr;
  std::uint32_t* out_ = nullptr;
  float* gain_ = nullptr;
  GroupArrays arrays_;

  Mapping wide_rows_;
  Mapping sums_;
  std::int64_t num_sums_ = 0;
  std::int64_t num_touched_ = 0;
};

/// Rows that were updated.
struct UpdatedRows {
  std::int64_t rows = 0;
  std::int64_t once = 0;  ///< rows that one entry names
};

/// Updates the rows of entries first <= i < first + count of the plan: those of one bucket, or some
/// of those that are set apart. Groups the entries of a bucket while prefetching their rows, sums
/// each row's gradients in canonical order and applies the rule. Entries that are set apart need no
/// grouping; they require that the table accumulates, and that rows are not marked. `hot`: the hot
/// rows of the bucket, already summed, or null.
UpdatedRows update_entries(const TableUpdate& table, std::int64_t first, std::int64_t count,
                           GroupScratch& scratch, SimdLevel level,
                           HotBucket* hot = nullptr) noexcept;

/// Steps rows first <= r < last that are not marked as touched, with a gradient of zeros. For rules
/// that step every row. Requires: all entries of the table have been applied; `scratch` has room
/// for half rows if the table's are.
void step_untouched_rows(const TableUpdate& table, std::int64_t first, std::int64_t last,
                         GroupScratch& scratch, SimdLevel level) noexcept;

/// Up to kMaxSideBySide small one-hot tables at once, each with a `direct` plan: gradients are
/// added in order to one accumulator per row and piece that starts at -0 (-0 + x is x, bit for
/// bit), then the rule is applied. Row numbers are not wide. unique: [count], distinct rows of each
/// table.
inline constexpr std::int32_t kMaxSideBySide = 8;
void update_small_tables(const TableUpdate* const* tables, std::int32_t count, std::int64_t* unique,
                         GroupScratch& scratch, SimdLevel level) noexcept;

}  // namespace embertable
