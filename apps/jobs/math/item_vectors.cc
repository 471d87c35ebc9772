#include "apps/jobs/math/item_vectors.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace embertable::jobs {
namespace {

/// Returns the divisor for the sum of the rows of a list of `size` ids.
double denominator(Combiner combiner, double size) {
  return combiner == Combiner::kSum ? 1 : combiner == Combiner::kMean ? size : std::sqrt(size);
}

}  // namespace

std::vector<float> all_rows(const Embedding& engine, const std::string& table) {
  for (const TableInfo& info : engine.tables()) {
    if (info.name != table) continue;
    std::vector<std::int64_t> ids(info.vocabulary_size);
    std::iota(ids.begin(), ids.end(), 0);
    std::vector<float> values(ids.size() * static_cast<std::size_t>(info.dim));
    engine.read_rows(table, ids, values);
    return values;
  }
  return {};
}

void add_combined(std::span<const std::int64_t> splits, std::span<const std::int32_t> ids,
                  std::span<const float> rows, std::int32_t dim, Combiner combiner,
                  std::span<float> vectors) {
  const auto width = static_cast<std::size_t>(dim);
  std::vector<double> sum(width);
  for (std::size_t list = 0; list + 1 < splits.size(); ++list) {
    const auto begin = static_cast<std::size_t>(splits[list]);
    const auto end = static_cast<std::size_t>(splits[list + 1]);
    if (begin == end) continue;
    std::fill(sum.begin(), sum.end(), 0);
    for (std::size_t i = begin; i < end; ++i) {
      for (std::size_t k = 0; k < width; ++k)
        sum[k] += rows[static_cast<std::size_t>(ids[i]) * width + k];
    }
    const double divisor = denominator(combiner, static_cast<double>(end - begin));
    for (std::size_t k = 0; k < width; ++k)
      vectors[list * width + k] += static_cast<float>(sum[k] / divisor);
  }
}

}  // namespace embertable::jobs
