#pragma once

#include <cstdint>

#include "base/random.h"
#include "base/rows.h"
#include "kernels/level.h"
#include "kernels/update.h"

namespace embertable {

/// Returns the distance between rows of `dim` floats in scratch memory: whole vectors.
inline std::int64_t padded(std::int64_t dim) { return (dim + 15) / 16 * 16; }

/// Collects rows and hands them to a rule, 16 at a time. Rows of bfloat16 are widened for the rule
/// and rounded back.
class TileInProgress {
 public:
  /// wide: for half rows, [RowTile::kRows, padded(dim)]; null for others, or if no row changes.
  TileInProgress(const RowBlock& rows, UpdateRows update, const StepScalars& step, float* wide,
                 SimdLevel level)
      : rows_(rows), update_(update), step_(step), wide_(wide), level_(level) {
    if (rows.is_half())
      stream_ = mix_seeds(rows.rounding.stream, static_cast<std::uint64_t>(step.step));
  }

  /// Returns the number of waiting rows.
  std::int32_t size() const { return size_; }

  /// True if row r is waiting. Requires: rows are float32.
  bool holds(std::uint64_t r) const noexcept {
    const float* row = rows_.row + static_cast<std::int64_t>(r) * rows_.stride;
    for (std::int32_t i = 0; i < size_; ++i)
      if (row_[i] == row) return true;
    return false;
  }

  /// `gradient` [dim] is read when the tile is full, or in `finish`. occurrence: steps that the row
  /// has taken before within this step.
  void add(std::uint64_t r, const float* gradient, std::uint64_t occurrence = 0) noexcept {
    const auto i = static_cast<std::int64_t>(r);
    const std::int32_t at = size_++;
    if (rows_.is_half())
      add_half(at, i, occurrence);
    else
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
    if (rows_.is_half())
      update_half(tile);
    else
      update_(tile, step_);
    size_ = 0;
  }

 private:
  void add_half(std::int32_t at, std::int64_t row, std::uint64_t occurrence) noexcept;
  void update_half(RowTile& tile) noexcept;

  const RowBlock& rows_;
  UpdateRows update_;
  const StepScalars& step_;
  float* wide_;
  SimdLevel level_;
  std::uint64_t stream_ = 0;
  std::int32_t size_ = 0;
  float* row_[RowTile::kRows];
  float* slot_[kMaxSlots][RowTile::kRows];
  const float* gradient_[RowTile::kRows];
  std::uint16_t* half_[RowTile::kRows];
  std::uint64_t number_[RowTile::kRows];
  std::uint64_t key_[RowTile::kRows];
};

}  // namespace embertable
