#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "embertable/executor.h"
#include "kernels/level.h"

namespace embertable::jobs {

/// Lists of numbers, back to back. Borrowed.
struct ListsView {
  std::span<const std::int64_t> splits;  ///< [lists + 1], rising; empty: every list is empty
  std::span<const std::int32_t> values;

  std::span<const std::int32_t> operator[](std::int64_t list) const noexcept {
    if (splits.empty()) return {};
    const auto l = static_cast<std::size_t>(list);
    return values.subspan(splits[l], splits[l + 1] - splits[l]);
  }
};

/// Whom to rank all items for, by the products of a query's vector and the items'.
struct Ranking {
  const float* queries = nullptr;  ///< [num_queries, dim]
  std::int64_t num_queries = 0;
  const float* items = nullptr;  ///< [num_items, dim]
  std::int64_t num_items = 0;
  std::int64_t dim = 0;
  ListsView excluded;     ///< items that a query does not want, each list rising
  std::int64_t most = 0;  ///< items of a query's list, >= 1
};

/// [num_queries, most]: for each query the items with the highest scores, best first; of equal
/// scores the item with the lower number is first; -1 where items run out. A score that is NaN or
/// -inf is in no list. Scores are sums of binary32 along dim in order, so that the lists are the
/// same for any executor and level.
std::vector<std::int32_t> rank_items(const Ranking& ranking, Executor& executor, SimdLevel level);

/// "recall@20": what a ranking is worth to a query that wants some items, looked at as far as item
/// `cutoff` of its list.
struct RankingMetric {
  /// The share of the wanted items that are in the list; the discounted gain of those, 1 / log2(1 +
  /// place), over that of the best list; whether any is there.
  enum class Kind : std::uint8_t { kRecall, kNdcg, kHitRate };

  std::string name;
  Kind kind = Kind::kRecall;
  std::int64_t cutoff = 0;
};

/// The metric of that name: "recall@K", "ndcg@K" or "hr@K" with 1 <= K <= 10,000.
std::optional<RankingMetric> ranking_metric(std::string_view name);

/// The mean over the queries that want items; 0 if none does. `ranked`: [num_queries, most] of
/// `rank_items` with most >= cutoff; `wanted`: for each query its items, each list rising.
double mean_quality(const RankingMetric& metric, std::span<const std::int32_t> ranked,
                    std::int64_t most, const ListsView& wanted);

}  // namespace embertable::jobs
