#pragma once

#include <atomic>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "base/rows.h"
#include "kernels/update.h"

namespace embertable {

struct GradientSumsOfTable;

/// The summed gradients of one shard's rows, in any order. The caller receives them where a rule
/// hands gradients on instead of stepping rows. The memory is not that of a step, which the lookup
/// of a later one may use again: sums can be read until the next update.
class GradientSums {
 public:
  /// Forgets all sums and makes room for `most` rows. Requires: no thread adds rows.
  void start(const RowBlock& rows, std::int64_t most) {
    rows_ = rows;
    size_.store(0, std::memory_order_relaxed);
    if (static_cast<std::int64_t>(row_.size()) < most) row_.resize(most);
    if (static_cast<std::int64_t>(sum_.size()) < most * rows.dim) sum_.resize(most * rows.dim);
  }

  /// Adds the rows of a tile. Several threads may call this at once.
  void add(const RowTile& tile) noexcept;

  std::int64_t size() const noexcept { return size_.load(std::memory_order_relaxed); }

  /// Row number within the shard, and sum [dim], of 0 <= i < size().
  std::int64_t row(std::int64_t i) const noexcept { return row_[i]; }
  const float* sum(std::int64_t i) const noexcept { return sum_.data() + i * rows_.dim; }

  std::int64_t bytes() const noexcept {
    return std::ssize(row_) * static_cast<std::int64_t>(sizeof(std::int64_t)) +
           std::ssize(sum_) * static_cast<std::int64_t>(sizeof(float));
  }

 private:
  RowBlock rows_;
  std::atomic<std::int64_t> size_ = 0;
  std::vector<std::int64_t> row_;
  std::vector<float> sum_;
};

/// Sorts rows of a table, each with its sum [dim], by row number.
GradientSumsOfTable in_order(std::vector<std::pair<std::int64_t, const float*>> sums,
                             std::int32_t dim, std::int64_t step);

}  // namespace embertable
