#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/memory.h"
#include "embertable/executor.h"
#include "kernels/group.h"

namespace embertable {

/// Maximum number of entries of one bucket, so that their places and twice as many hashes fit into
/// 32 bits.
inline constexpr std::int64_t kMostGrouped = std::int64_t{1} << 31;

/// Memory for updates by one worker at a time. Grows only between steps, by the `reserve` calls.
class GroupScratch {
 public:
  /// Makes room for update_entries: buckets of up to `entries` entries, tables up to `dim` wide,
  /// row numbers of 8 bytes if wide. Takes an eighth more, so that the next steps' buckets fit.
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

/// Memory to group entries in, for the items of one parallel region: each worker has its own, and
/// large items have memory by themselves, so that all of it is bounded by the entries of all items.
/// Reused.
class ScratchPool {
 public:
  /// What one item groups at most.
  struct Need {
    std::int64_t entries = -1;  ///< -1: it groups nothing
    bool wide = false;
    std::int32_t dim = 0;  ///< floats of a sum, 0: there is none
  };

  /// Makes room for every item, whichever worker takes it. Throws IoError if the memory cannot be
  /// had.
  void reserve(std::int64_t items, std::int32_t workers,
               FunctionRef<Need(std::int64_t item)> need_of);

  /// Makes room for small tables in each worker's own memory, and for half rows in all memory: see
  /// GroupScratch. Requires: `reserve` was called.
  void reserve_small(std::int64_t rows, std::int64_t floats);
  void reserve_wide_rows(std::int32_t dim);

  /// Returns the memory of an item, until the worker's next one.
  GroupScratch& of(const WorkItem& work) {
    const std::int64_t large = large_of_[work.index];
    return large < 0 ? own_[work.worker] : large_[large];
  }
  GroupScratch& own(const WorkItem& work) { return own_[work.worker]; }

  std::int64_t bytes() const noexcept;

 private:
  void reserve_large(std::int64_t items, std::int64_t own,
                     FunctionRef<Need(std::int64_t item)> need_of);

  std::vector<GroupScratch> own_;       ///< by worker
  std::vector<std::int64_t> large_of_;  ///< by item: its number in `large_`, or -1
  Mapping large_memory_;                ///< memory that the next ones use
  std::vector<GroupScratch> large_;
};

}  // namespace embertable
