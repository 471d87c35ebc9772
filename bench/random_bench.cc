// embertable-bench --random: loads that nobody tuned anything to.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "bench/load_bench.h"
#include "bench/load_memory.h"
#include "bench/memory.h"

namespace embertable::bench {
namespace {

constexpr std::size_t kMostRowBytes = std::size_t{1536} << 20;

/// The least that a drawn load should reach of the smallest ratio among the standard workloads.
constexpr double kWantedShare = 0.7;

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

/// W1 to W6 with fewer rows where memory is short.
std::vector<Load> standard_loads(std::size_t free_bytes) {
  std::vector<Load> loads;
  for (const Workload& workload : standard_workloads()) {
    Load& load = loads.emplace_back(load_of(workload));
    if (make_fit(load, {}, free_bytes))
      std::fprintf(stderr, "%s: with %lld rows a table, which fit into the free memory\n",
                   load.name.c_str(), static_cast<long long>(load.tables.front().rows));
  }
  return loads;
}

double smallest_ratio(const std::vector<Load>& loads, int threads, int repetitions, bool json) {
  double smallest = std::numeric_limits<double>::infinity();
  for (const Load& load : loads) {
    const LoadResult result = run_load(load, threads, repetitions);
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
  if (!floor) standard = standard_loads(free_bytes);
  if (!json) {
    std::printf("%s  %s\n", describe(load).c_str(),
                memory_needed(bytes_for(load), free_bytes).c_str());
    std::fflush(stdout);
  }
  const LoadResult result = run_load(load, threads, repetitions);
  const double smallest = floor ? *floor : smallest_ratio(standard, threads, repetitions, json);
  const double share = result.of_limit() / smallest;
  if (json) {
    nlohmann::ordered_json out;
    out["seed"] = seed;
    out["threads"] = threads;
    out["lookups"] = result.lookups;
    out["step"] = result.rate();
    out["step_limit_all_bytes"] = static_cast<double>(result.lookups) / result.bare.step();
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
      static_cast<double>(result.lookups) / result.bare.step() * 1e-6, result.of_limit(), smallest,
      floor ? " (given)" : "", share, kWantedShare, share < kWantedShare ? ": MISSED" : "");
}

}  // namespace embertable::bench
