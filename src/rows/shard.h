#pragma once

#include <cstdint>
#include <vector>

#include "base/memory.h"
#include "base/rows.h"
#include "embertable/executor.h"
#include "embertable/initializer.h"
#include "rows/placement.h"

namespace embertable {

/// Returns the number of elements from one record to the next: among the strides within 12.5 % of
/// the record, the smallest of those whose records touch the fewest cache lines, a line having
/// `line` elements. Requires: record >= 1.
std::int64_t record_stride(std::int64_t record, std::int64_t line = 16);

/// How a table's rows are stored: as floats, or as halves that are rounded by the random bits of a
/// stream.
struct RowStorage {
  RowType type = RowType::kFloat32;
  std::uint64_t rounding_stream = 0;  ///< depends on seed and table
};

/// The rows of one table that one host holds, with the optimizer's slots. A full-size slot is part
/// of the row's record, `[row | slot | ...]`; a row-wise slot is an array of its own.
class Shard {
 public:
  /// Maps zeroed memory without touching it. row_wise[s]: slot s holds one number per row. Throws
  /// IoError if the memory cannot be had.
  Shard(const Placement& placement, std::int32_t host, std::int32_t dim,
        const std::vector<bool>& row_wise, RowStorage storage = {});

  std::int32_t host() const noexcept { return host_; }
  std::int64_t rows() const noexcept { return rows_; }
  std::int32_t dim() const noexcept { return block_.dim; }
  const RowBlock& block() const noexcept { return block_; }

  /// Returns the floats per row of a variable: dim, or 1 for a row-wise slot. slot -1: the rows
  /// themselves.
  std::int32_t width(std::int32_t slot) const noexcept;

  /// Returns the type of a variable's numbers.
  RowType type(std::int32_t slot) const noexcept {
    return slot < 0 ? block_.type : RowType::kFloat32;
  }

  /// Copies variable `slot` of `count` local rows, `step` apart, to `out`, dense. Halves are
  /// widened.
  void read(std::int32_t slot, std::int64_t first, std::int64_t step, std::int64_t count,
            float* out) const noexcept;

  /// Sets variable `slot` of a local row. Halves are rounded to nearest even.
  void write(std::int32_t slot, std::int64_t row, const float* values) const noexcept;

  /// Returns the number of elements from one row of a variable to the next: floats or halves.
  std::int64_t stride(std::int32_t slot) const noexcept {
    return slot < 0 ? block_.stride : block_.slot_stride[slot];
  }

  /// Returns where variable `slot` of the first row starts, and the bytes to that of the next row.
  std::byte* memory(std::int32_t slot) const noexcept {
    return static_cast<std::byte*>(slot < 0 ? block_.memory() : block_.slot[slot]);
  }
  std::int64_t stride_bytes(std::int32_t slot) const noexcept {
    return slot < 0 ? block_.stride * block_.element_bytes()
                    : block_.slot_stride[slot] * static_cast<std::int64_t>(sizeof(float));
  }

  /// Writes first values, in parallel. Memory that is new has +0 everywhere, and need not be told.
  void initialize(std::int32_t slot, const Initializer& initializer, std::uint64_t stream,
                  Executor& executor);

  /// Writes what another shard of the same rows has, in parallel.
  void copy(std::int32_t slot, const Shard& from, Executor& executor);

  /// Memory of the records, and of the row-wise slots by slot number.
  const Mapping& records() const noexcept { return records_; }
  const Mapping& row_wise_slot(std::int32_t slot) const noexcept { return row_wise_[slot]; }
  bool is_row_wise(std::int32_t slot) const noexcept {
    return block_.slot_stride[slot] == 1;  // a full-size slot shares its record with the row
  }

 private:
  using Block =
      FunctionRef<void(std::int64_t first, std::int64_t last, std::vector<float>& buffer)>;
  void in_blocks(std::int32_t slot, Executor& executor, Block block) const;
  void fill_rows(std::int32_t slot, const Initializer& initializer, std::uint64_t stream,
                 std::int64_t first, std::int64_t last, std::vector<float>& buffer);

  Placement placement_;
  std::int32_t host_;
  std::int64_t rows_;
  RowBlock block_;
  Mapping records_;
  std::vector<Mapping> row_wise_;  ///< by slot, empty for full-size ones
};

}  // namespace embertable
