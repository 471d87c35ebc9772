#include "kernels/row_tile.h"

#include "base/bfloat16.h"
#include "kernels/half_rows.h"

namespace embertable {

void TileInProgress::add_half(std::int32_t at, std::int64_t row,
                              std::uint64_t occurrence) noexcept {
  const RowRounding& rounding = rows_.rounding;
  half_[at] = rows_.half + row * rows_.stride;
  row_[at] = wide_ == nullptr ? nullptr : wide_ + at * padded(rows_.dim);
  number_[at] = static_cast<std::uint64_t>(row);
  key_[at] = rounding_key(stream_, static_cast<std::uint64_t>(rounding.first + row * rounding.step),
                          occurrence);
}

/// Widens the rows, applies the rule, and rounds them back; where rows stay as they are, their
/// memory, which may be read-only or read by others meanwhile, is left alone.
void TileInProgress::update_half(RowTile& tile) noexcept {
  tile.number = number_;
  if (wide_ == nullptr) return update_(tile, step_);
  const HalfTile half = {.half = half_,
                         .wide = row_,
                         .key = key_,
                         .rows = size_,
                         .dim = rows_.dim,
                         .low = step_.row_low,
                         .high = step_.row_high};
  widen_rows(half, level_);
  update_(tile, step_);
  round_rows(half, level_);
}

}  // namespace embertable
