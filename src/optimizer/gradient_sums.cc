#include "optimizer/gradient_sums.h"

#include <algorithm>

#include "base/assert.h"
#include "embertable/embedding.h"

namespace embertable {

void GradientSums::add(const RowTile& tile) noexcept {
  const std::int64_t first = size_.fetch_add(tile.rows, std::memory_order_relaxed);
  EMBERTABLE_ASSERT(first + tile.rows <= static_cast<std::int64_t>(row_.size()));
  for (std::int32_t i = 0; i < tile.rows; ++i) {
    row_[first + i] = tile.number != nullptr ? static_cast<std::int64_t>(tile.number[i])
                                             : (tile.row[i] - rows_.row) / rows_.stride;
    std::copy_n(tile.gradient[i], tile.dim, sum_.data() + (first + i) * tile.dim);
  }
}

GradientSumsOfTable in_order(std::vector<std::pair<std::int64_t, const float*>> sums,
                             std::int32_t dim, std::int64_t step) {
  std::sort(sums.begin(), sums.end());
  GradientSumsOfTable result{.step = step, .ids = {}, .sums = {}};
  result.ids.reserve(sums.size());
  result.sums.reserve(sums.size() * static_cast<std::size_t>(dim));
  for (const auto& [id, sum] : sums) {
    result.ids.push_back(id);
    result.sums.insert(result.sums.end(), sum, sum + dim);
  }
  return result;
}

}  // namespace embertable
