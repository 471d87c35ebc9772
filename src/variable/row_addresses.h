#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/memory.h"
#include "embertable/executor.h"
#include "embertable/variables/tensor.h"
#include "variable/row_locator.h"

namespace embertable {

/// Location of the rows of one block.
struct RowBlockPlace {
  const std::byte* data = nullptr;  ///< row i at data + i * stride
  std::int64_t stride = 0;          ///< bytes
  std::int64_t rows = 0;
};

/// Row numbers, int32 or int64. Borrowed.
struct RowIndices {
  const std::byte* data = nullptr;
  std::int64_t count = 0;
  bool wide = false;

  std::int64_t operator[](std::int64_t i) const noexcept {
    return wide ? reinterpret_cast<const std::int64_t*>(data)[i]
                : std::int64_t{reinterpret_cast<const std::int32_t*>(data)[i]};
  }
};

/// Addresses of rows of several blocks as multiples of one unit from one place, so that kernels
/// which know one table and one stride reach all of them.
class RowAddresses {
 public:
  RowAddresses(const RowLocator& locator, std::span<const RowBlockPlace> places);

  /// The lowest address of a row; null without rows.
  const std::byte* base() const noexcept { return base_; }

  std::int64_t rows() const noexcept { return locator_.rows(); }

  /// Bytes; row r is at base() + number(r) * unit().
  std::int64_t unit() const noexcept { return unit_; }

  /// Computes number[i] of row indices[first + i]. [count]. Returns false if one of them is not in
  /// [0, rows()), because another thread has changed it since it was checked; it is taken for row
  /// 0. Requires: rows() > 0.
  bool numbers(const RowIndices& indices, std::int64_t first, std::int64_t count,
               std::uint64_t* number) const noexcept;

 private:
  struct Line {
    std::uint64_t scale = 0, start = 0;  ///< number = start + row * scale, modulo 2^64
  };

  const RowLocator& locator_;
  std::vector<Line> lines_;  ///< by block
  const std::byte* base_ = nullptr;
  std::int64_t unit_ = 64;
};

/// Copies row indices[i] to out row i. Rows have row_bytes bytes; out is packed. Returns what
/// RowAddresses::numbers does.
struct ReadRows {
  const RowAddresses& addresses;
  RowIndices indices;
  std::int64_t row_bytes = 0;
  std::byte* out = nullptr;
  Executor* executor = nullptr;  ///< null: the calling thread
};
bool read_rows(const ReadRows& args);

/// Rows that one worker changes, one after the other: row number[k] by value from[k], or by value
/// first + k where from is null.
struct ChangePiece {
  const std::uint64_t* number = nullptr;
  const std::uint64_t* from = nullptr;
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t soon = 0;  ///< entries after these with which the next piece begins
};

/// Calls `apply` with pieces that together name every index once. Changes of one row keep the
/// caller's order: they are in one piece, or in pieces of which each begins when those before have
/// ended.
struct ChangeRows {
  const RowAddresses& addresses;
  RowIndices indices;  ///< each in [0, addresses.rows()); not changed during the call
  std::int64_t row_bytes = 0;
  Executor* executor = nullptr;
  Arena* scratch = nullptr;  ///< taken from where there is an executor
};
void change_rows(const ChangeRows& args, FunctionRef<void(const ChangePiece&)> apply);

}  // namespace embertable
