#pragma once

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/rows.h"
#include "embertable/embedding.h"
#include "kernels/update.h"

namespace embertable {

/// What the caller receives of one shard where a rule hands on gradients instead of stepping rows:
/// rows in any order, each with its summed gradient.
class GradientSums {
 public:
  /// Forgets everything; room for so many rows. Not while rows are added.
  void start(const RowBlock& rows, std::int64_t most) {
    rows_ = rows;
    size_.store(0, std::memory_order_relaxed);
    if (static_cast<std::int64_t>(row_.size()) < most) row_.resize(most);
    if (static_cast<std::int64_t>(sum_.size()) < most * rows.dim) sum_.resize(most * rows.dim);
  }

  /// The rows of a tile; from several threads at once.
  void add(const RowTile& tile) noexcept;

  std::int64_t size() const noexcept { return size_.load(std::memory_order_relaxed); }

  /// Row number within the shard, and sum [dim], of 0 <= i < size().
  std::int64_t row(std::int64_t i) const noexcept { return row_[i]; }
  const float* sum(std::int64_t i) const noexcept { return sum_.data() + i * rows_.dim; }

 private:
  RowBlock rows_;
  std::atomic<std::int64_t> size_ = 0;
  std::vector<std::int64_t> row_;
  std::vector<float> sum_;
};

/// Rows of a table, each with its sum [dim], in the order of the rows.
GradientSumsOfTable in_order(std::vector<std::pair<std::int64_t, const float*>> sums,
                             std::int32_t dim, std::int64_t step);

}  // namespace embertable
