// embertable-bench hot compares batches in which one id makes up much of all entries with uniform
// ones.
#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "bench/commands/commands.h"
#include "bench/commands/report.h"
#include "bench/loads/memory_need.h"
#include "bench/machine/machine.h"
#include "bench/machine/timing.h"
#include "bench/training/lane.h"

namespace embertable::bench {
namespace {

constexpr double kShares[] = {0, 0.3, 1};

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
  Lane lane = make_lane(data, threads);
  const std::size_t each = load.batches;
  std::vector<std::vector<double>> seconds(std::size(kShares));
  for (int repetition = 0; repetition <= repetitions; ++repetition) {
    for (std::size_t kind = 0; kind < seconds.size(); ++kind) {
      lane.warm_up(kind * each);  // sizes the buckets for the next ones
      for (std::size_t b = 0; b < each; ++b) lane.step(kind * each + b);
      const StageSeconds pass = lane.end_pass(false);
      if (repetition > 0) seconds[kind].push_back(pass.step());
    }
  }
  std::vector<double> rates;
  for (std::size_t kind = 0; kind < seconds.size(); ++kind)
    rates.push_back(lookups[kind] / median(seconds[kind]));
  return rates;
}

void run_hot(std::int64_t rows, const CommonOptions& options) {
  constexpr LoadCopies kHeld = {.tables = 1, .batches = static_cast<int>(std::size(kShares))};
  std::vector<Load> loads = hot_loads(rows);
  const std::size_t free_bytes = available_memory_bytes();
  std::size_t most = 0;
  for (Load& load : loads) {
    make_fit_and_say(load, kHeld, free_bytes);
    most = std::max(most, bytes_for(load, kHeld));
  }
  const Table table({{"load", "", -42},
                     {"uniform", "uniform", 9, 1, 1e-6},
                     {"third", "30 %", 9, 1, 1e-6},
                     {"single", "one id", 9, 1, 1e-6},
                     {"third_of_uniform", "of uniform", 10, 2},
                     {"single_of_uniform", "", 5, 2}});
  table.begin(options.json, "the largest " + memory_needed(most, free_bytes) + "\n");
  for (const Load& load : loads) {
    const std::vector<double> rate = hot_rates(load, options.threads, options.repetitions);
    table.print(options.json, {{"load", load.name},
                               {"threads", options.threads},
                               {"rows", load.tables.front().rows},
                               {"uniform", rate[0]},
                               {"third", rate[1]},
                               {"single", rate[2]},
                               {"third_of_uniform", rate[1] / rate[0]},
                               {"single_of_uniform", rate[2] / rate[0]}});
  }
}

}  // namespace

Command add_hot(CLI::App& app, CommonOptions& common) {
  CLI::App* command = app.add_subcommand(
      "hot", "Batches in which one id makes up 30 % of all entries, or all, beside uniform ones");
  auto rows = std::make_shared<std::int64_t>(10'000'000);
  add_number(*command, "--rows", *rows, "Rows of tables that no cache holds", 1000, kMostRows);
  return CommonAdder(*command, common).threads().repetitions(5).json().runs([rows, &common] {
    run_hot(*rows, common);
  });
}

}  // namespace embertable::bench
