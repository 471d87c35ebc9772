#include "kernels/row_tile.h"

#include "base/bfloat16.h"
#include "kernels/half_rows.h"

namespace embertable {

void TileInProgress::add_half(std::int32_t at, std::int64_t row,
                              std::uint64_t occurrence) noexcept {
  const RowRounding& rounding = rows_.rounding;
  half_[at] = rows_.half + row * rows_.stride;
  row_[at] = wide_ + at * padded(rows_.dim);
  number_[at] = static_cast<std::uint64_t>(row);
  key_[at] = rounding_key(stream_, static_cast<std::uint64_t>(rounding.first + row * rounding.step),
                          occurrence);
}

/// Widens the rows, applies the rule, and rounds them back.
void TileInProgress::update_half(RowTile& tile) noexcept {
  const HalfTile half = {half_, row_, key_, size_, rows_.dim};
  tile.number = number_;
  widen_rows(half, level_);
  update_(tile, step_);
  round_rows(half, level_);
}

}  // namespace embertable
