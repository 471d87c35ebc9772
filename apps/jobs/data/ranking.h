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

/// Queries and items to rank by the products of their vectors.
struct Ranking {
  const float* queries = nullptr;  ///< [num_queries, dim]
  std::int64_t num_queries = 0;
  const float* items = nullptr;  ///< [num_items, dim]
  std::int64_t num_items = 0;
  std::int64_t dim = 0;
  ListsView excluded;     ///< items to leave out for each query, each list rising
  std::int64_t most = 0;  ///< length of a query's list, >= 1
};

/// Returns [num_queries, most]: for each query the items with the highest scores, best first. Of
/// equal scores the item with the lower number comes first; -1 fills up if items run out. A score
/// that is NaN or -inf is in no list. Scores are sums of binary32 along dim in order, so that the
/// lists are the same for any executor and level.
std::vector<std::int32_t> rank_items(const Ranking& ranking, Executor& executor, SimdLevel level);

/// "recall@20": the quality of a ranking for a query that wants some items, judged by the first
/// `cutoff` items of its list.
struct RankingMetric {
  /// kRecall is the share of the wanted items that are in the list; kNdcg is their discounted gain,
  /// 1 / log2(1 + place), over that of the best list; kHitRate says whether any is there.
  enum class Kind : std::uint8_t { kRecall, kNdcg, kHitRate };

  std::string name;
  Kind kind = Kind::kRecall;
  std::int64_t cutoff = 0;
};

/// Returns the metric of that name: "recall@K", "ndcg@K" or "hr@K" with 1 <= K <= 10,000.
std::optional<RankingMetric> ranking_metric(std::string_view name);

/// Returns the mean over the queries that want items; NaN if none does. `ranked` is [num_queries,
/// most] of `rank_items` with most >= cutoff; `wanted` has the items of each query, each list
/// rising.
double mean_quality(const RankingMetric& metric, std::span<const std::int32_t> ranked,
                    std::int64_t most, const ListsView& wanted);

}  // namespace embertable::jobs
