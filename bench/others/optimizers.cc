// embertable-bench optimizers measures what each rule costs.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/commands/commands.h"
#include "bench/commands/report.h"
#include "bench/limits/bare_loops.h"
#include "bench/limits/limits.h"
#include "bench/loads/random.h"
#include "bench/loads/standard_loads.h"
#include "bench/machine/machine.h"
#include "bench/machine/timing.h"
#include "bench/training/lane.h"
#include "embertable/embedding.h"
#include "embertable/optimizer_rules.h"

namespace embertable::bench {
namespace {

constexpr std::int32_t kDims[] = {16, 64, 256};
constexpr std::int32_t kBatches = 16;

/// Floats of one batch's gradients, and bytes of different ones: more than caches hold.
constexpr std::int64_t kBatchFloats = std::int64_t{4} << 20;
constexpr std::size_t kUpdateGradientBytes = 12 * kBatchFloats * sizeof(float);

struct OptimizerBenchOptions {
  std::string rule;                  ///< only this one; empty: every rule
  std::int64_t mib = 1024;           ///< size of a table with its slots
  bool step = false;                 ///< whole steps instead
  std::int64_t step_rows = 500'000;  ///< rows of each table of W1 in whole steps
};

/// Divisions and square roots of a rule for each element of a row, in all passes over it: two over
/// row and slots where the norm of the step comes first.
struct Divisions {
  const char* rule;
  int divisions, roots;
};

/// Rules that are not listed need neither.
constexpr Divisions kDivisions[] = {
    {"adadelta", 1, 2},
    {"adagrad", 1, 1},
    {"adagrad_momentum", 1, 1},
    {"adam", 1, 1},
    {"adamw", 1, 1},
    {"bounded_adagrad", 1, 1},
    {"centered_rms_prop", 1, 1},
    {"frequency_aware_adagrad", 2, 2},
    {"ftrl", 3, 2},
    {"lamb", 2, 2},
    {"mdl_adagrad_light", 1, 1},
    {"online_yogi", 3, 2},
    {"partial_rowwise_adam", 1, 0},
    {"partial_rowwise_lamb", 2, 0},
    {"proximal_adagrad", 2, 1},
    {"proximal_yogi", 1, 1},
    {"rms_prop", 1, 1},
};

/// Returns a table of one rule, `mib` MiB with its slots, in whose batches every sample is a row of
/// its own.
LoadData update_data(const std::string& rule, std::int32_t dim, std::int64_t mib) {
  Load load;
  load.samples = static_cast<std::int32_t>(kBatchFloats / dim);
  load.batches = kBatches;
  load.tables = {{.dim = dim, .rule = rule}};
  load.features = {{}};
  LoadTable& table = load.tables.front();
  table.rows = std::max<std::int64_t>(mib * (1 << 20) / table.record_bytes(), load.samples);
  const auto rows = static_cast<std::uint64_t>(table.rows);
  const Spread spread(rows);
  std::vector<LoadBatch> batches;
  std::uint64_t rank = 0;
  for (std::int32_t b = 0; b < kBatches; ++b) {
    LoadIds& ids = batches.emplace_back(1).front();
    for (std::int32_t i = 0; i < load.samples; ++i) {
      ids.splits.push_back(i);
      ids.ids.push_back(static_cast<std::int64_t>(spread(rank++ % rows)));
    }
    ids.splits.push_back(load.samples);
  }
  return LoadData(load, std::move(batches), kUpdateGradientBytes);
}

/// Returns how many elements per second the division units of the executor's CPUs process.
double division_rate(const Divisions& operations, Executor& executor) {
  constexpr std::size_t kFloats = 2048;
  constexpr int kPasses = 2048;
  const std::vector<float> numbers(kFloats, 1.5f);
  const SimdLevel level = simd_level();
  const double seconds = seconds_of([&] {
    run_parts(executor, [&](std::int64_t, std::int64_t) {
      float sum = 0;
      for (int pass = 0; pass < kPasses; ++pass)
        sum += bare_divide(numbers.data(), kFloats, operations.divisions, operations.roots, level);
      return sum;
    });
  });
  return static_cast<double>(kFloats) * kPasses * executor.workers() / seconds;
}

/// Returns how many unique rows per second the update of a rule processes: grouping the entries of
/// a batch of distinct rows, summing, applying the rule. Beside it, alternating, the rate at which
/// this machine reads and writes the same rows and slots, and the limit of the division unit.
/// Throws ValueError if the rule cannot train such a table.
Json measure_rule(const std::string& rule, std::int32_t dim, const OptimizerBenchOptions& options,
                  const CommonOptions& common) {
  const LoadData data = update_data(rule, dim, options.mib);
  Lane lane = make_lane(data, common.threads);
  Limits limits(data, lane.executor());
  const auto* const divides = std::ranges::find(kDivisions, rule, &Divisions::rule);
  const bool known = divides != std::end(kDivisions);
  std::vector<double> seconds, division;
  LoopTimes bare, with_gradients;
  const OtherLoad other_load;
  for (int repetition = 0; repetition <= common.repetitions; ++repetition) {
    double update = 0;
    for (std::size_t b = 0; b < data.batches.size(); ++b) {
      lane.step(b);
      update += lane.engine().last_step().update_seconds;
    }
    if (repetition == 0) continue;
    seconds.push_back(update);
    bare.run([&](const FetchAhead& ahead) { limits.update_pass(ahead, Moves::kRecords); });
    with_gradients.run([&](const FetchAhead& ahead) { limits.update_pass(ahead, Moves::kAll); });
    if (known) division.push_back(division_rate(*divides, lane.executor()));
  }
  const auto rows = static_cast<double>(count_lookups(data.batches));
  const double rate = rows / median(seconds), limit = rows / bare.median(),
               limit_with_gradients = rows / with_gradients.median();
  return {{"optimizer", rule},
          {"dim", dim},
          {"threads", common.threads},
          {"repetitions", common.repetitions},
          {"rows", data.load.tables.front().rows},
          {"row_bytes", data.load.tables.front().record_bytes()},
          {"rows_per_second", rate},
          {"rmw_limit", limit},
          {"of_limit", rate / limit},
          {"rmw_limit_with_gradients", limit_with_gradients},
          {"of_limit_with_gradients", rate / limit_with_gradients},
          {"division_limit", known ? Json(median(division) / dim) : Json()},
          {"other_load", other_load.share()}};
}

void run_updates(const std::vector<std::string>& rules, const OptimizerBenchOptions& options,
                 const CommonOptions& common) {
  const Table table({{"optimizer", "rule", -24},
                     {"dim", "D", 4},
                     {"row_bytes", "bytes", 6},
                     {"rows_per_second", "M rows/s", 9, 2, 1e-6},
                     {"rmw_limit", "rows read, written", 19, 2, 1e-6},
                     {"of_limit", "of it", 6, 2},
                     {"rmw_limit_with_gradients", "gradients read too", 19, 2, 1e-6},
                     {"of_limit_with_gradients", "of it", 6, 2},
                     {"division_limit", "division limit", 15, 2, 1e-6}});
  table.begin(
      common.json,
      fmt::format("unique rows updated, {} MiB of rows and slots, {} threads, median of {}\n",
                  options.mib, common.threads, common.repetitions));
  for (const std::string& rule : rules) {
    for (const std::int32_t dim : kDims) {
      try {
        table.print(common.json, measure_rule(rule, dim, options, common));
      } catch (const ValueError& error) {
        print(common.json, {{"optimizer", rule}, {"dim", dim}, {"refused", error.what()}},
              fmt::format("  {:<24} {:>4} {}\n", rule, dim, error.what()));
        break;  // the other dims would be refused as well
      }
    }
  }
}

/// Longer than threads of a pool look for work before they sleep.
constexpr std::chrono::microseconds kPause(100);

/// Waits until the threads of the other lane sleep, awake: the processor keeps its frequency.
void wait_for_sleep() {
  const auto until = std::chrono::steady_clock::now() + kPause;
  while (std::chrono::steady_clock::now() < until) {
  }
}

/// Returns the medians of the whole steps of two lanes that take turns, half a pass apart.
std::pair<double, double> step_seconds(const LoadData& data, const std::string& first,
                                       const std::string& second, const CommonOptions& common) {
  Lane a = make_lane(data, common.threads, Optimizer(first, 1e-4));
  Lane b = make_lane(data, common.threads, Optimizer(second, 1e-4));
  b.next_gradient((data.gradients.size() + 1) / 2);
  const std::size_t batches = data.batches.size();
  for (int repetition = 0; repetition <= common.repetitions; ++repetition) {
    for (std::size_t batch = 0; batch < batches; ++batch) {
      wait_for_sleep();
      a.step(batch);
      wait_for_sleep();
      b.step((batch + (batches + 1) / 2) % batches);
    }
    a.end_pass(repetition > 0);
    b.end_pass(repetition > 0);
  }
  return {a.median().step, b.median().step};
}

/// Measures whole steps of W1 with each rule, alternating with row-wise Adagrad.
void run_steps(const std::vector<std::string>& rules, const OptimizerBenchOptions& options,
               const CommonOptions& common) {
  Load load = find_standard_load("W1");
  for (LoadTable& table : load.tables) table.rows = options.step_rows;
  const LoadData data(load);
  const auto lookups = static_cast<double>(count_lookups(data.batches));
  const Table table(
      {{"optimizer", "rule", -24},
       {"lookups_per_second", "M lookups/s", 12, 2, 1e-6},
       {"rowwise_adagrad_lookups_per_second", "rowwise_adagrad in turns", 24, 2, 1e-6},
       {"of_rowwise_adagrad", "ratio", 8, 2}});
  table.begin(common.json,
              fmt::format("whole steps of W1, {} rows a table, {} threads, median of {}\n",
                          options.step_rows, common.threads, common.repetitions));
  for (const std::string& rule : rules) {
    const auto [ours, rowwise] = step_seconds(data, rule, "rowwise_adagrad", common);
    table.print(common.json, {{"optimizer", rule},
                              {"workload", "W1"},
                              {"rows", options.step_rows},
                              {"threads", common.threads},
                              {"lookups_per_second", lookups / ours},
                              {"rowwise_adagrad_lookups_per_second", lookups / rowwise},
                              {"of_rowwise_adagrad", rowwise / ours}});
  }
}

}  // namespace

Command add_optimizers(CLI::App& app, CommonOptions& common) {
  CLI::App* command = app.add_subcommand(
      "optimizers", "Times every optimizer's update beside the rate at which rows move");
  auto options = std::make_shared<OptimizerBenchOptions>();
  command->add_option("--rule", options->rule, "Only this optimizer");
  CLI::Option* mib = add_number(*command, "--mib", options->mib, "MiB of rows and slots of a table",
                                1, std::int64_t{1} << 20);
  CLI::Option* step = command->add_flag(
      "--step", options->step,
      "Instead: whole steps of W1, adagrad and adam in turns with rowwise_adagrad");
  step->excludes(mib);
  add_number(*command, "--rows", options->step_rows, "Rows per table of --step", 1, kMostRows)
      ->needs(step);
  return CommonAdder(*command, common).threads().repetitions(5).json().runs([options, &common] {
    std::vector<std::string> rules = optimizer_rules();
    if (options->step) rules = {"adagrad", "adam"};
    if (!options->rule.empty()) rules = {Optimizer(options->rule, 0.1).rule()};
    (options->step ? run_steps : run_updates)(rules, *options, common);
  });
}

}  // namespace embertable::bench
