// embertable-bench --random measures loads that the library was not tuned for.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "bench/loads/memory_need.h"
#include "bench/loads/random.h"
#include "bench/loads/standard_loads.h"
#include "bench/machine/machine.h"
#include "bench/training/run_load.h"

namespace embertable::bench {
namespace {

constexpr std::size_t kMostRowBytes = std::size_t{1536} << 20;

/// A drawn load should reach this share of the smallest ratio among the standard workloads.
constexpr double kWantedShare = 0.7;

constexpr const char* kRules[] = {"rowwise_adagrad", "adagrad",  "adam", "sgd",
                                  "momentum",        "rms_prop", "ftrl", "lion"};
constexpr Combiner kCombiners[] = {Combiner::kSum, Combiner::kMean, Combiner::kSqrtN};

/// A drawn load expects at most this many lookups in a batch.
constexpr double kMostLookups = 400'000;

/// The seed of a load's ids is this far from the seed of its shape.
constexpr std::uint64_t kIdSeed = 77;

std::int32_t between(Random& random, std::int32_t low, std::int32_t high) {
  return low + static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(high - low + 1)));
}

/// Returns a whole number of low..high whose logarithm is uniform.
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

/// Draws a load of mixed dims of 8 to 128, tables that several features share, weights, empty
/// samples, one to four replicas and several rules; the seed decides all of it. Rows without slots
/// take at most `most_bytes`.
Load draw_load(std::uint64_t seed, std::size_t most_bytes) {
  Random random(seed);
  Load load;
  load.name = fmt::format("random {}", seed);
  load.seed = seed + kIdSeed;
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

std::string describe(const Load& load) {
  std::string text =
      fmt::format("{}: {} tables, {} features, {} replicas x {} samples\n", load.name,
                  load.tables.size(), load.features.size(), load.replicas, load.samples);
  for (std::size_t t = 0; t < load.tables.size(); ++t) {
    const LoadTable& table = load.tables[t];
    std::string features;
    for (const LoadFeature& f : load.features) {
      if (f.table != t) continue;
      features += fmt::format(
          "{}{}-{} ids, zipf {:.2f}{}{}", features.empty() ? "" : "; ", f.min_ids, f.max_ids,
          f.zipf_exponent, f.weighted ? ", weighted" : "",
          f.empty_share > 0 ? fmt::format(", {:.0f} % empty", f.empty_share * 100) : "");
    }
    const char* combiner = table.combiner == Combiner::kSum    ? "sum"
                           : table.combiner == Combiner::kMean ? "mean"
                                                               : "sqrtn";
    text += fmt::format("  {:>9} x {:<4} {:<5} {:<16} {}\n", table.rows, table.dim, combiner,
                        table.rule, features);
  }
  return text;
}

/// Returns W1 to W6, with fewer rows where memory is short.
std::vector<Load> fitting_standard_loads(std::size_t free_bytes) {
  std::vector<Load> loads;
  for (const Load& standard : standard_loads()) {
    Load& load = loads.emplace_back(standard);
    if (make_fit(load, {}, free_bytes))
      std::fprintf(stderr, "%s: with %lld rows a table, which fit into the free memory\n",
                   load.name.c_str(), static_cast<long long>(load.tables.front().rows));
  }
  return loads;
}

double smallest_ratio(const std::vector<Load>& loads, int threads, int repetitions, bool json) {
  double smallest = std::numeric_limits<double>::infinity();
  for (const Load& load : loads) {
    const LoadResult result = run_load(load, threads, repetitions, Between::kNothing, false);
    smallest = std::min(smallest, result.of_limit());
    if (json) continue;
    std::printf("  %s: %.1f million lookups/s, %.2f of its limit\n", load.name.c_str(),
                result.rate() * 1e-6, result.of_limit());
    std::fflush(stdout);
  }
  return smallest;
}

}  // namespace

void run_random(std::uint64_t seed, int threads, int repetitions, std::optional<double> floor,
                bool json) {
  const Load load = draw_load(seed, kMostRowBytes);
  const std::size_t free_bytes = available_memory_bytes();
  require_memory(load, {}, free_bytes);
  std::vector<Load> standard;
  if (!floor) standard = fitting_standard_loads(free_bytes);
  if (!json) {
    std::printf("%s  %s\n", describe(load).c_str(),
                memory_needed(bytes_for(load), free_bytes).c_str());
    std::fflush(stdout);
  }
  const LoadResult result = run_load(load, threads, repetitions, Between::kNothing, false);
  const double smallest = floor ? *floor : smallest_ratio(standard, threads, repetitions, json);
  const double share = result.of_limit() / smallest;
  if (json) {
    nlohmann::ordered_json out;
    out["seed"] = seed;
    out["threads"] = threads;
    out["lookups"] = result.lookups;
    out["step"] = result.rate();
    out["step_limit_all_bytes"] = result.limit_rate();
    out["of_limit"] = result.of_limit();
    out["smallest_standard"] = smallest;
    out["share_of_smallest"] = share;
    out["other_load"] = result.other_load;
    std::puts(out.dump().c_str());
    return;
  }
  std::printf(
      "  %.2fM lookups a pass, %d threads: %.1f million lookups/s; all bytes: %.1f; %.2f of it\n"
      "  smallest of W1 to W6: %.2f%s; %.2f of that, wanted: %.1f%s\n",
      static_cast<double>(result.lookups) * 1e-6, threads, result.rate() * 1e-6,
      result.limit_rate() * 1e-6, result.of_limit(), smallest, floor ? " (given)" : "", share,
      kWantedShare, share < kWantedShare ? ": MISSED" : "");
}

}  // namespace embertable::bench
