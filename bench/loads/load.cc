#include "bench/loads/load.h"

#include <algorithm>
#include <utility>

#include "bench/loads/random.h"
#include "embertable/optimizer_rules.h"

namespace embertable::bench {
namespace {

LoadIds draw_ids(const Load& load, const LoadFeature& feature, Random& random) {
  const auto rows = static_cast<std::uint64_t>(load.tables[feature.table].rows);
  const std::int32_t choices = feature.max_ids - feature.min_ids + 1;
  const bool uniform = feature.zipf_exponent <= 0;
  const Zipf zipf(uniform ? 1.0 : feature.zipf_exponent, rows);
  const Spread spread(rows);
  LoadIds drawn;
  drawn.splits.push_back(0);
  for (std::int32_t s = 0; s < load.samples; ++s) {
    std::int64_t count = feature.min_ids;
    if (choices > 1) count += random.below(choices);
    if (feature.empty_share > 0 && random.fraction() < feature.empty_share) count = 0;
    for (; count > 0; --count) {
      std::uint64_t id = uniform ? random.below(rows) : spread(zipf(random));
      if (feature.hot_share > 0 && random.fraction() < feature.hot_share) id = rows / 3;
      drawn.ids.push_back(static_cast<std::int64_t>(id));
      if (feature.weighted) drawn.weights.push_back(static_cast<float>(0.5 + random.fraction()));
    }
    drawn.splits.push_back(static_cast<std::int64_t>(drawn.ids.size()));
  }
  return drawn;
}

}  // namespace

std::int64_t LoadTable::record_bytes() const {
  std::int64_t floats = dim;
  for (const OptimizerSlot& slot : slots_of(Optimizer(rule, 0.1)))
    floats += slot.row_wise ? 1 : dim;
  return floats * static_cast<std::int64_t>(sizeof(float));
}

std::size_t Load::output_floats() const {
  std::size_t floats = 0;
  for (std::size_t f = 0; f < features.size(); ++f) floats += static_cast<std::size_t>(dim_of(f));
  return floats * samples * replicas;
}

std::vector<LoadBatch> make_load_batches(const Load& load) {
  Random random(load.seed);
  std::vector<LoadBatch> batches(load.batches);
  for (LoadBatch& batch : batches)
    for (std::int32_t r = 0; r < load.replicas; ++r)
      for (const LoadFeature& feature : load.features)
        batch.push_back(draw_ids(load, feature, random));
  return batches;
}

std::size_t count_lookups(std::span<const LoadBatch> batches) {
  std::size_t lookups = 0;
  for (const LoadBatch& batch : batches)
    for (const LoadIds& ids : batch) lookups += ids.ids.size();
  return lookups;
}

std::vector<std::vector<std::uint32_t>> named_rows(const Load& load,
                                                   std::span<const LoadIds> batch) {
  Random random(1);
  std::vector<std::vector<std::uint32_t>> named(load.tables.size());
  for (std::size_t i = 0; i < batch.size(); ++i) {
    std::vector<std::uint32_t>& rows = named[load.features[i % load.features.size()].table];
    rows.insert(rows.end(), batch[i].ids.begin(), batch[i].ids.end());
  }
  for (std::vector<std::uint32_t>& rows : named) {
    std::sort(rows.begin(), rows.end());
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    for (std::size_t i = rows.size(); i > 1; --i) std::swap(rows[i - 1], rows[random.below(i)]);
  }
  return named;
}

}  // namespace embertable::bench
