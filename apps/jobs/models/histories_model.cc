#include "apps/jobs/models/histories_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "apps/jobs/models/histories_predictor.h"
#include "apps/jobs/spec/named.h"

namespace embertable::jobs {
namespace {

bool all_finite(const float* values, std::int64_t count) {
  return std::all_of(values, values + count, [](float value) { return std::isfinite(value); });
}

/// Returns a ranking with some of the queries.
Ranking with_queries(Ranking ranking, std::int64_t first, std::int64_t count) {
  ranking.queries += first * ranking.dim;
  ranking.num_queries = count;
  if (!ranking.excluded.splits.empty())
    ranking.excluded.splits = ranking.excluded.splits.subspan(first, count + 1);
  return ranking;
}

Measures judge(std::span<const std::int32_t> ranked, std::int64_t most, const ListsView& wanted,
               const std::vector<RankingMetric>& metrics) {
  Measures measures;
  for (const RankingMetric& metric : metrics)
    measures.push_back({metric.name, mean_quality(metric, ranked, most, wanted)});
  return measures;
}

std::int64_t longest(const std::vector<RankingMetric>& metrics) {
  std::int64_t most = 0;
  for (const RankingMetric& metric : metrics) most = std::max(most, metric.cutoff);
  return most;
}

}  // namespace

std::vector<std::string> HistoriesModelSpec::ids_without_tables() const {
  return {histories_.data.users.name, histories_.data.items.name};
}

std::vector<std::string> HistoriesModelSpec::metrics() const { return names_of(metrics_); }

void HistoriesModelSpec::read_histories_data(TomlSection& root,
                                             const std::vector<std::string>& rules,
                                             const std::vector<std::string>& usual) {
  histories_ = read_histories_job(root, rules);
  std::vector<std::string> names = root.texts("metrics", usual);
  names.insert(names.end(), usual.begin(), usual.end());
  for (const std::string& name : names) {
    const std::vector<std::string> known = metrics();
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    auto metric = ranking_metric(name);
    if (!metric) {
      root.refuse_value("metrics", "a list of recall@K, ndcg@K and hr@K, with K from 1 to 10000");
    }
    metrics_.push_back(std::move(*metric));
  }
}

std::string HistoriesModelSpec::read_table(TomlSection& section, std::string_view key,
                                           const Job& job, const std::string& ids,
                                           std::int32_t dim) {
  std::vector<std::string> names;
  for (const TableSpec& table : job.tables)
    if (table.ids == ids) names.push_back(table.name);
  if (names.empty())
    section.refuse(key, fmt::format("needs a table of the ids \"{}\", got none", ids));
  const std::string name = section.choice(key, names);
  const std::int32_t own = named(job.tables, name).dim;
  if (dim != 0 && own != dim)
    section.refuse(
        key, fmt::format("must name a table of dim {}, got \"{}\" of dim {}", dim, name, own));
  return name;
}

PartsById HistoriesModelSpec::parts_by_id() const {
  PartsById parts{.keys = {}, .lists = {}, .numbers = {popularity_part()}};
  for (const KeysSpec* keys : {&histories_.data.users, &histories_.data.items})
    parts.keys.push_back({.ids = keys->name, .kind = keys->kind});
  for (const ItemListsSpec& attributes : histories_.attributes)
    parts.keys.push_back({.ids = attributes.keys.name, .kind = attributes.keys.kind});
  if (!ranked_vectors().user.empty()) parts.lists.push_back(known_part());
  return parts;
}

std::unique_ptr<Predictor> HistoriesModelSpec::make_predictor(const SavedParts& saved,
                                                              const NewRows& rows) const {
  return std::make_unique<HistoriesPredictor>(saved, *this, rows);
}

Measures measure_ranking(Ranking ranking, const ListsView& wanted,
                         const std::vector<RankingMetric>& metrics, Lookups& lookups) {
  if (!all_finite(ranking.queries, ranking.num_queries * ranking.dim) ||
      !all_finite(ranking.items, ranking.num_items * ranking.dim)) {
    Measures none;
    for (const RankingMetric& metric : metrics)
      none.push_back({metric.name, std::numeric_limits<double>::quiet_NaN()});
    return none;
  }
  ranking.most = longest(metrics);
  std::vector<std::int32_t> ranked(ranking.num_queries * ranking.most);
  lookups.divide(ranking.num_queries, std::as_writable_bytes(std::span(ranked)),
                 [&](std::int64_t first, std::int64_t count) {
                   const std::vector<std::int32_t> part = rank_items(
                       with_queries(ranking, first, count), lookups.executor(), simd_level());
                   std::copy(part.begin(), part.end(), ranked.begin() + first * ranking.most);
                 });
  return judge(ranked, ranking.most, wanted, metrics);
}

std::vector<float> popularity(const Histories& histories, Part first) {
  std::vector<float> counts(histories.items.size());
  for (std::size_t i = 0; i < histories.events.size(); ++i) {
    if (histories.part[i] >= first) ++counts[histories.events[i]];
  }
  return counts;
}

Measures measure_popularity(const Histories& histories, Part first, std::int64_t queries,
                            const ListsView& excluded, const ListsView& wanted,
                            const std::vector<RankingMetric>& metrics) {
  const std::vector<float> counts = popularity(histories, first);
  const std::vector<float> ones(queries, 1.0f);
  const Ranking ranking = {.queries = ones.data(),
                           .num_queries = queries,
                           .items = counts.data(),
                           .num_items = histories.items.size(),
                           .dim = 1,
                           .excluded = excluded,
                           .most = longest(metrics)};
  return judge(rank_items(ranking, *make_inline_executor(), simd_level()), ranking.most, wanted,
               metrics);
}

}  // namespace embertable::jobs
