#include "bench/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "bench/random.h"

namespace embertable::bench {
namespace {

constexpr const char* kRules[] = {"rowwise_adagrad", "adagrad",  "adam", "sgd",
                                  "momentum",        "rms_prop", "ftrl", "lion"};
constexpr Combiner kCombiners[] = {Combiner::kSum, Combiner::kMean, Combiner::kSqrtN};

/// Lookups of one batch that a drawn load stays near to, or below.
constexpr double kMostLookups = 400'000;

std::int32_t between(Random& random, std::int32_t low, std::int32_t high) {
  return low + static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(high - low + 1)));
}

/// Any whole number of low..high, small ones as often as large ones.
std::int64_t at_any_scale(Random& random, double low, double high) {
  return std::llround(low * std::pow(high / low, random.fraction()));
}

LoadTable draw_table(Random& random) {
  LoadTable table;
  table.rows = at_any_scale(random, 1000, 4e6);
  table.dim = between(random, 8, 128);
  table.combiner = kCombiners[random.below(std::size(kCombiners))];
  table.rule = kRules[random.below(std::size(kRules))];
  return table;
}

LoadFeature draw_feature(Random& random, std::size_t table) {
  LoadFeature feature;
  feature.table = table;
  feature.max_ids = static_cast<std::int32_t>(at_any_scale(random, 1, 60));
  feature.min_ids = random.below(2) == 0 ? 1 : feature.max_ids;
  feature.empty_share = random.below(3) == 0 ? random.fraction() * 0.3 : 0;
  feature.zipf_exponent = random.below(3) == 0 ? 0 : 0.6 + random.fraction() * 0.6;
  feature.weighted = random.below(3) == 0;
  return feature;
}

double expected_lookups(const Load& load) {
  double ids = 0;
  for (const LoadFeature& feature : load.features)
    ids += (1 - feature.empty_share) * (feature.min_ids + feature.max_ids) / 2;
  return ids * load.samples * load.replicas;
}

LoadIds draw_ids(const Load& load, const LoadFeature& feature, Random& random) {
  const auto rows = static_cast<std::uint64_t>(load.tables[feature.table].rows);
  const bool uniform = feature.zipf_exponent <= 0;
  const Zipf zipf(uniform ? 1.0 : feature.zipf_exponent, rows);
  const Spread spread(rows);
  LoadIds drawn;
  drawn.splits.push_back(0);
  for (std::int32_t s = 0; s < load.samples; ++s) {
    std::int32_t count = between(random, feature.min_ids, feature.max_ids);
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

std::size_t Load::output_floats() const {
  std::size_t floats = 0;
  for (std::size_t f = 0; f < features.size(); ++f) floats += static_cast<std::size_t>(dim_of(f));
  return floats * static_cast<std::size_t>(samples) * static_cast<std::size_t>(replicas);
}

std::size_t Load::row_bytes() const {
  std::size_t floats = 0;
  for (const LoadTable& table : tables)
    floats += static_cast<std::size_t>(table.rows) * static_cast<std::size_t>(table.dim);
  return floats * sizeof(float);
}

Load load_of(const Workload& workload) {
  Load load;
  load.name = workload.name;
  load.samples = workload.samples;
  load.batches = workload.batches;
  load.seed = 1234;
  for (std::int32_t t = 0; t < workload.tables; ++t) {
    load.tables.push_back({.rows = workload.rows, .dim = workload.dim});
    load.features.push_back({.table = static_cast<std::size_t>(t),
                             .min_ids = workload.min_ids,
                             .max_ids = workload.max_ids,
                             .zipf_exponent = workload.zipf_exponent});
  }
  return load;
}

Load draw_load(std::uint64_t seed, std::size_t most_bytes) {
  Random random(seed);
  Load load;
  load.name = fmt::format("random {}", seed);
  load.seed = seed;
  load.replicas = between(random, 1, 4);
  load.samples = static_cast<std::int32_t>(at_any_scale(random, 256, 4096));
  load.batches = 24;
  const std::int32_t tables = between(random, 2, 16);
  for (std::int32_t t = 0; t < tables; ++t) {
    load.tables.push_back(draw_table(random));
    for (std::int32_t shared = random.below(3) == 0 ? between(random, 2, 4) : 1; shared > 0;
         --shared)
      load.features.push_back(draw_feature(random, static_cast<std::size_t>(t)));
  }
  while (load.row_bytes() > most_bytes)
    for (LoadTable& table : load.tables) table.rows = std::max<std::int64_t>(table.rows / 2, 1000);
  while (expected_lookups(load) > kMostLookups && load.samples > 64) load.samples /= 2;
  return load;
}

std::vector<LoadBatch> make_load_batches(const Load& load) {
  Random random(load.seed + 77);
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

}  // namespace embertable::bench
