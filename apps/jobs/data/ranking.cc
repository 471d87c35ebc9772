#include "apps/jobs/data/ranking.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/math.h"

namespace embertable::jobs {
namespace {

/// Scores of neighbouring queries and items.
struct ScoreTile {
  const float* queries;  ///< [num_queries, dim]
  std::int64_t num_queries;
  const float* panels;  ///< [num_panels, dim, 16]
  std::int64_t num_panels;
  std::int64_t dim;
  float* scores;  ///< [num_queries, num_panels * 16]
};

}  // namespace
}  // namespace embertable::jobs

#define EMBERTABLE_LEVEL_BODY "apps/jobs/data/ranking.inl"
#include "kernels/for_each_level.inl"

namespace embertable::jobs {
namespace {

constexpr std::int64_t kQueriesAtOnce = 64;  ///< queries for which one work item ranks
/// Items of this many panels fit the second level cache.
constexpr std::int64_t kPanelsAtOnce = 32;
constexpr float kLowest = -std::numeric_limits<float>::infinity();

/// Returns items in panels of 16, [dim, 16] each; the last panel is padded with zeros.
std::vector<float> panels_of(const Ranking& ranking) {
  const std::int64_t dim = ranking.dim;
  std::vector<float> panels((ranking.num_items + 15) / 16 * 16 * dim);
  for (std::int64_t i = 0; i < ranking.num_items; ++i) {
    float* const panel = panels.data() + i / 16 * 16 * dim + i % 16;
    for (std::int64_t k = 0; k < dim; ++k) panel[k * 16] = ranking.items[i * dim + k];
  }
  return panels;
}

/// The best items of one query so far. Items are added in rising order.
class BestItems {
 public:
  BestItems(std::int64_t most, std::span<const std::int32_t> excluded, std::int32_t* out)
      : most_(most), excluded_(excluded), items_(out) {
    std::fill_n(items_, most, -1);
    scores_.reserve(most);
  }

  /// Adds items [first, first + count) with these scores, which it changes.
  void add(std::int64_t first, std::int64_t count, float* scores, SimdLevel level) {
    for (; next_excluded_ < excluded_.size() && excluded_[next_excluded_] < first + count;
         ++next_excluded_) {
      scores[excluded_[next_excluded_] - first] = kLowest;
    }
    for (std::int64_t i = 0;; ++i) {
      i = EMBERTABLE_AT_LEVEL(level, next_above(scores, i, count, bound()));
      if (i == count) return;
      insert(scores[i], static_cast<std::int32_t>(first + i));
    }
  }

 private:
  float bound() const noexcept { return std::ssize(scores_) < most_ ? kLowest : scores_.back(); }

  void insert(float score, std::int32_t item) {
    if (std::ssize(scores_) < most_) scores_.push_back(score);
    std::size_t at = scores_.size() - 1;
    for (; at > 0 && scores_[at - 1] < score; --at) {
      scores_[at] = scores_[at - 1];
      items_[at] = items_[at - 1];
    }
    scores_[at] = score;
    items_[at] = item;
  }

  std::int64_t most_;
  std::span<const std::int32_t> excluded_;
  std::size_t next_excluded_ = 0;
  std::int32_t* items_;
  std::vector<float> scores_;
};

/// Ranks for queries [first, first + count).
void rank_block(const Ranking& ranking, std::span<const float> panels, std::int64_t first,
                std::int64_t count, SimdLevel level, std::int32_t* out) {
  std::vector<BestItems> best;
  for (std::int64_t q = 0; q < count; ++q)
    best.emplace_back(ranking.most, ranking.excluded[first + q], out + (first + q) * ranking.most);
  std::vector<float> scores(count * kPanelsAtOnce * 16);
  for (std::int64_t item = 0; item < ranking.num_items; item += kPanelsAtOnce * 16) {
    const std::int64_t items = std::min(kPanelsAtOnce * 16, ranking.num_items - item);
    const ScoreTile tile{.queries = ranking.queries + first * ranking.dim,
                         .num_queries = count,
                         .panels = panels.data() + item * ranking.dim,
                         .num_panels = (items + 15) / 16,
                         .dim = ranking.dim,
                         .scores = scores.data()};
    EMBERTABLE_AT_LEVEL(level, score(tile));
    for (std::int64_t q = 0; q < count; ++q) {
      float* const of_query = scores.data() + q * tile.num_panels * 16;
      best[q].add(item, items, of_query, level);
    }
  }
}

/// Returns 1 / log2(1 + place), place from 1.
std::vector<double> discounts(std::int64_t places) {
  std::vector<double> gains;
  for (std::int64_t place = 1; place <= places; ++place)
    gains.push_back(math::log(2) / math::log(static_cast<double>(1 + place)));
  return gains;
}

/// Returns the metric of one query.
double quality(RankingMetric::Kind kind, std::span<const std::int32_t> ranked,
               std::span<const std::int32_t> wanted, std::span<const double> gains) {
  double hits = 0, gain = 0, best = 0;
  for (std::size_t place = 0; place < ranked.size(); ++place) {
    if (place < wanted.size()) best += gains[place];
    if (!std::binary_search(wanted.begin(), wanted.end(), ranked[place])) continue;
    hits += 1;
    gain += gains[place];
  }
  switch (kind) {
    case RankingMetric::Kind::kRecall:
      return hits / static_cast<double>(wanted.size());
    case RankingMetric::Kind::kNdcg:
      return gain / best;
    case RankingMetric::Kind::kHitRate:
      break;
  }
  return hits > 0 ? 1 : 0;
}

}  // namespace

std::vector<std::int32_t> rank_items(const Ranking& ranking, Executor& executor, SimdLevel level) {
  std::vector<std::int32_t> ranked(ranking.num_queries * ranking.most);
  const std::vector<float> panels = panels_of(ranking);
  const std::int64_t blocks = (ranking.num_queries + kQueriesAtOnce - 1) / kQueriesAtOnce;
  executor.run(blocks, [&](const WorkItem& item) {
    const std::int64_t first = item.index * kQueriesAtOnce;
    const std::int64_t count = std::min(kQueriesAtOnce, ranking.num_queries - first);
    rank_block(ranking, panels, first, count, level, ranked.data());
  });
  return ranked;
}

std::optional<RankingMetric> ranking_metric(std::string_view name) {
  constexpr std::pair<std::string_view, RankingMetric::Kind> kKinds[] = {
      {"recall@", RankingMetric::Kind::kRecall},
      {"ndcg@", RankingMetric::Kind::kNdcg},
      {"hr@", RankingMetric::Kind::kHitRate}};
  for (const auto& [prefix, kind] : kKinds) {
    if (!name.starts_with(prefix)) continue;
    const std::string_view digits = name.substr(prefix.size());
    RankingMetric metric{.name = std::string(name), .kind = kind};
    const auto parsed =
        std::from_chars(digits.data(), digits.data() + digits.size(), metric.cutoff);
    const bool whole = parsed.ec == std::errc() && parsed.ptr == digits.data() + digits.size();
    if (whole && digits[0] != '0' && metric.cutoff >= 1 && metric.cutoff <= 10'000) return metric;
  }
  return {};
}

double mean_quality(const RankingMetric& metric, std::span<const std::int32_t> ranked,
                    std::int64_t most, const ListsView& wanted) {
  const std::vector<double> gains = discounts(metric.cutoff);
  double sum = 0;
  std::int64_t queries = 0;
  const std::int64_t all = std::ssize(ranked) / most;
  for (std::int64_t q = 0; q < all; ++q) {
    const std::span<const std::int32_t> items = wanted[q];
    if (items.empty()) continue;
    const auto list = ranked.subspan(q * most, metric.cutoff);
    sum += quality(metric.kind, list, items, gains);
    ++queries;
  }
  return queries == 0 ? std::numeric_limits<double>::quiet_NaN()
                      : sum / static_cast<double>(queries);
}

}  // namespace embertable::jobs
