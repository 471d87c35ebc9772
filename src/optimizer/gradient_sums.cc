#include "optimizer/gradient_sums.h"

#include <algorithm>

#include "base/assert.h"

namespace embertable {

void GradientSums::add(const RowTile& tile) noexcept {
  const std::int64_t first = size_.fetch_add(tile.rows, std::memory_order_relaxed);
  EMBERTABLE_ASSERT(first + tile.rows <= static_cast<std::int64_t>(row_.size()));
  for (std::int32_t i = 0; i < tile.rows; ++i) {
    row_[static_cast<std::size_t>(first + i)] = (tile.row[i] - rows_.row) / rows_.stride;
    std::copy_n(tile.gradient[i], tile.dim, sum_.data() + (first + i) * tile.dim);
  }
}

}  // namespace embertable
