#pragma once

#include <cstdint>

#include "base/rows.h"
#include "kernels/update.h"

namespace embertable {

/// Collects rows and hands them to a rule, 16 at a time.
class TileInProgress {
 public:
  TileInProgress(const RowBlock& rows, UpdateRows update, const StepScalars& step)
      : rows_(rows), update_(update), step_(step) {}

  /// Returns the number of waiting rows.
  std::int32_t size() const { return size_; }

  /// True if row r is waiting.
  bool holds(std::uint64_t r) const noexcept {
    const float* row = rows_.row + static_cast<std::int64_t>(r) * rows_.stride;
    for (std::int32_t i = 0; i < size_; ++i)
      if (row_[i] == row) return true;
    return false;
  }

  /// `gradient` [dim] is read when the tile is full, or in `finish`.
  void add(std::uint64_t r, const float* gradient) noexcept {
    const auto i = static_cast<std::int64_t>(r);
    const std::int32_t at = size_++;
    row_[at] = rows_.row + i * rows_.stride;
    for (int s = 0; s < rows_.slots; ++s) slot_[s][at] = rows_.slot[s] + i * rows_.slot_stride[s];
    gradient_[at] = gradient;
    if (at + 1 == RowTile::kRows) finish();
  }

  /// Updates the waiting rows.
  void finish() noexcept {
    if (size_ == 0) return;
    RowTile tile;
    tile.row = row_;
    for (int s = 0; s < kMaxSlots; ++s) tile.slot[s] = slot_[s];
    tile.gradient = gradient_;
    tile.rows = size_;
    tile.dim = rows_.dim;
    update_(tile, step_);
    size_ = 0;
  }

 private:
  const RowBlock& rows_;
  UpdateRows update_;
  const StepScalars& step_;
  std::int32_t size_ = 0;
  float* row_[RowTile::kRows];
  float* slot_[kMaxSlots][RowTile::kRows];
  const float* gradient_[RowTile::kRows];
};

}  // namespace embertable
