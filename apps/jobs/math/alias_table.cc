#include "apps/jobs/math/alias_table.h"

#include <numeric>

#include "base/assert.h"

namespace embertable::jobs {

AliasTable::AliasTable(std::span<const double> weights) : columns_(weights.size()) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  EMBERTABLE_ASSERT(sum > 0);
  const double columns = static_cast<double>(weights.size());
  std::vector<double> left(weights.size());  // what is left of each column's share; a full one is 1
  std::vector<std::int32_t> low, high;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    left[i] = weights[i] / sum * columns;
    (left[i] < 1 ? low : high).push_back(static_cast<std::int32_t>(i));
    columns_[i] = {0xffffffffu, static_cast<std::int32_t>(i)};
  }
  while (!low.empty() && !high.empty()) {
    const std::int32_t filled = low.back(), from = high.back();
    low.pop_back();
    const double own = left[filled];
    columns_[filled] = {static_cast<std::uint32_t>(own * 0x1p32), from};
    double& rest = left[from];
    rest -= 1 - own;
    if (rest < 1) {
      high.pop_back();
      low.push_back(from);
    }
  }
}

}  // namespace embertable::jobs
