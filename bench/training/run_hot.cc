// embertable-bench hot compares batches in which one id makes up much of all entries with uniform
// ones.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "bench/loads/memory_need.h"
#include "bench/machine/machine.h"
#include "bench/machine/timing.h"
#include "bench/training/lane.h"
#include "bench/training/run_load.h"

namespace embertable::bench {
namespace {

constexpr double kShares[] = {0, 0.3, 1};

/// A batch with hot ids should reach this share of the rate of a uniform one.
constexpr double kWantedOfUniform = 0.5;

/// Returns loads that differ in what bounds them: rows in memory or in cache, and samples enough
/// for several pieces of a sum (4,096 samples each) or for one alone.
std::vector<Load> hot_loads(std::int64_t rows) {
  std::vector<Load> loads;
  const auto add = [&](const char* name, std::int64_t table_rows, std::int32_t samples,
                       std::int32_t max_ids, std::int32_t dim) {
    Load load;
    load.name = name;
    load.tables = {{.rows = table_rows, .dim = dim}};
    load.features = {{.max_ids = max_ids}};
    load.samples = samples;
    load.batches = 16;
    load.seed = 77;
    loads.push_back(load);
  };
  add("rows in memory, 8192 samples of 10 ids", rows, 8192, 19, 64);
  add("rows in memory, 2048 samples of 20 ids", rows, 2048, 39, 64);
  add("rows in cache, 8192 samples of 10 ids", 20'000, 8192, 19, 32);
  add("rows in cache, 4096 samples of 40 ids", 20'000, 4096, 79, 32);
  add("rows in memory, 65536 samples of one id", rows, 65536, 1, 64);
  return loads;
}

/// Returns the lookups per second with each share of hot ids; the shares alternate pass by pass.
std::vector<double> hot_rates(Load load, int threads, int repetitions) {
  std::vector<LoadBatch> batches;
  std::vector<double> lookups;
  for (const double share : kShares) {
    load.features.front().hot_share = share;
    std::vector<LoadBatch> drawn = make_load_batches(load);
    lookups.push_back(static_cast<double>(count_lookups(drawn)));
    std::move(drawn.begin(), drawn.end(), std::back_inserter(batches));
  }
  const LoadData data(load, std::move(batches));
  const std::unique_ptr<Lane> lane = make_lane(data, threads);
  const auto kinds = std::size(kShares);
  const std::size_t each = load.batches;
  std::vector<std::vector<double>> seconds(kinds);
  std::size_t done = 0;
  for (int repetition = 0; repetition <= repetitions; ++repetition) {
    for (std::size_t kind = 0; kind < kinds; ++kind) {
      StageSeconds pass;
      lane->step(kind * each, 0);  // sizes the buckets for the next ones
      for (std::size_t b = 0; b < each; ++b, ++done) pass += lane->step(kind * each + b, done);
      if (repetition > 0) seconds[kind].push_back(pass.step());
    }
  }
  std::vector<double> rates;
  for (std::size_t kind = 0; kind < kinds; ++kind)
    rates.push_back(lookups[kind] / median(seconds[kind]));
  return rates;
}

void make_hot_loads_fit(std::vector<Load>& loads, std::size_t free_bytes, bool json) {
  constexpr LoadCopies kHeld = {.tables = 1, .batches = static_cast<int>(std::size(kShares))};
  std::size_t most = 0;
  for (Load& load : loads) {
    if (make_fit(load, kHeld, free_bytes))
      std::fprintf(stderr, "%s: with %lld rows, which fit into the free memory\n",
                   load.name.c_str(), static_cast<long long>(load.tables.front().rows));
    most = std::max(most, bytes_for(load, kHeld));
  }
  if (!json) std::printf("the largest %s\n", memory_needed(most, free_bytes).c_str());
}

}  // namespace

void run_hot(int threads, int repetitions, std::int64_t rows, bool json) {
  std::vector<Load> loads = hot_loads(rows);
  make_hot_loads_fit(loads, available_memory_bytes(), json);
  if (!json) std::printf("%-42s %9s %9s %9s   of uniform\n", "", "uniform", "30 %", "one id");
  for (const Load& load : loads) {
    const std::vector<double> rate = hot_rates(load, threads, repetitions);
    const double some = rate[1] / rate[0], all = rate[2] / rate[0];
    if (json) {
      nlohmann::ordered_json out;
      out["load"] = load.name;
      out["threads"] = threads;
      out["rows"] = load.tables.front().rows;
      out["uniform"] = rate[0];
      out["third"] = rate[1];
      out["single"] = rate[2];
      out["third_of_uniform"] = some;
      out["single_of_uniform"] = all;
      std::puts(out.dump().c_str());
    } else {
      std::printf("%-42s %9.1f %9.1f %9.1f   %.2f  %.2f%s\n", load.name.c_str(), rate[0] * 1e-6,
                  rate[1] * 1e-6, rate[2] * 1e-6, some, all,
                  some < kWantedOfUniform || all < kWantedOfUniform ? "   MISSED" : "");
    }
    std::fflush(stdout);
  }
}

}  // namespace embertable::bench
