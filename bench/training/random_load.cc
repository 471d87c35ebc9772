// embertable-bench --random measures loads that the library was not tuned for.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <vector>

#include "bench/commands/report.h"
#include "bench/loads/memory_need.h"
#include "bench/loads/random.h"
#include "bench/loads/standard_loads.h"
#include "bench/machine/machine.h"
#include "bench/training/run_load.h"
#include "bench/training/workloads.h"

namespace embertable::bench {
namespace {

constexpr std::size_t kMostRowBytes = std::size_t{1536} << 20;

constexpr const char* kRules[] = {"rowwise_adagrad", "adagrad",  "adam", "sgd",
                                  "momentum",        "rms_prop", "ftrl", "lion"};
constexpr Combiner kCombiners[] = {Combiner::kSum, Combiner::kMean, Combiner::kSqrtN};

/// A drawn load expects at most this many lookups in a batch.
constexpr double kMostLookups = 400'000;

/// The seed of a load's ids is this far from the seed of its shape.
constexpr std::uint64_t kIdSeed = 77;

std::int32_t between(Random& random, std::int32_t low, std::int32_t high) {
  return low + random.below(high - low + 1);
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

std::size_t bytes_of_rows(const Load& load) {
  std::size_t floats = 0;
  for (const LoadTable& table : load.tables)
    floats += static_cast<std::size_t>(table.rows) * table.dim;
  return floats * sizeof(float);
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
  while (bytes_of_rows(load) > most_bytes)
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
    text += fmt::format("  {:>9} x {:<4} {:<5} {:<16} {}\n", table.rows, table.dim,
                        to_string(table.combiner), table.rule, features);
  }
  return text;
}

double smallest_ratio(const std::vector<Load>& loads, const CommonOptions& options) {
  double smallest = std::numeric_limits<double>::infinity();
  for (const Load& load : loads) {
    const LoadResult result = run_load(load, options.threads, options.repetitions, {});
    smallest = std::min(smallest, result.of_limit());
    print_text(options.json,
               fmt::format("  {}: {:.1f} million lookups/s, {:.2f} of its limit\n", load.name,
                           result.rate(result.seconds.step) * 1e-6, result.of_limit()));
  }
  return smallest;
}

}  // namespace

void run_random(std::uint64_t seed, std::optional<double> floor, const CommonOptions& options) {
  const Load load = draw_load(seed, kMostRowBytes);
  const std::size_t free_bytes = available_memory_bytes();
  require_memory(load, {}, free_bytes);
  std::vector<Load> standard;
  if (!floor) standard.assign(standard_loads().begin(), standard_loads().end());
  for (Load& of : standard) make_fit_and_say(of, {}, free_bytes);
  print_text(options.json,
             describe(load) + "  " + memory_needed(bytes_for(load), free_bytes) + "\n");
  const LoadResult result = run_load(load, options.threads, options.repetitions, {});
  const double smallest = floor ? *floor : smallest_ratio(standard, options);
  const double share = result.of_limit() / smallest;
  const double rate = result.rate(result.seconds.step);
  const double limit_rate = result.rate(result.limits.step_all());
  print(
      options.json,
      {{"seed", seed},
       {"threads", options.threads},
       {"lookups", result.lookups},
       {"step", rate},
       {"step_limit_all_bytes", limit_rate},
       {"of_limit", result.of_limit()},
       {"smallest_standard", smallest},
       {"share_of_smallest", share},
       {"other_load", result.other_load}},
      fmt::format("  {:.2f}M lookups a pass, {} threads: {:.1f} million lookups/s; all bytes: "
                  "{:.1f}; {:.2f} of it\n"
                  "  smallest of W1 to W6: {:.2f}{}; {:.2f} of that\n",
                  static_cast<double>(result.lookups) * 1e-6, options.threads, rate * 1e-6,
                  limit_rate * 1e-6, result.of_limit(), smallest, floor ? " (given)" : "", share));
}

}  // namespace embertable::bench
