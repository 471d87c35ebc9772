// embertable-bench small shows what a step costs that looks up few rows, and how much of that is
// paid once for the step whatever it looks up.
#include <fmt/format.h>

#include <algorithm>

#include "bench/commands/commands.h"
#include "bench/commands/report.h"
#include "bench/training/lane.h"

namespace embertable::bench {
namespace {

constexpr std::int32_t kTables = 4, kIdsOfSample = 5;

/// Returns a load of about `lookups` lookups a step.
Load small_load(std::int32_t lookups, std::int64_t rows) {
  Load load;
  load.name = fmt::format("{} lookups", lookups);
  for (std::int32_t t = 0; t < kTables; ++t) {
    load.tables.push_back({.rows = rows, .dim = 32});
    load.features.push_back(
        {.table = static_cast<std::size_t>(t), .min_ids = kIdsOfSample, .max_ids = kIdsOfSample});
  }
  load.samples = lookups / (kTables * kIdsOfSample);
  load.batches = 64;
  load.seed = 99;
  return load;
}

/// An engine that takes steps of one size.
class SmallLane {
 public:
  SmallLane(std::int32_t lookups, std::int64_t rows, int threads)
      : data_(small_load(lookups, rows)),
        lane_(make_lane(data_, threads)),
        steps_(std::max<std::size_t>(200'000 / lookups, data_.batches.size())) {}

  void pass(bool counts) {
    lane_.warm_up();
    for (std::size_t i = 0; i < steps_; ++i) lane_.step(i % data_.batches.size());
    lane_.end_pass(counts);
  }
  double seconds() const { return lane_.median().step / static_cast<double>(steps_); }

 private:
  LoadData data_;
  Lane lane_;
  std::size_t steps_;
};

/// Compares steps with steps that look up twice as much: what does not double is paid once.
Json measure_small(std::int32_t lookups, bool in_cache, std::int64_t rows,
                   const CommonOptions& options) {
  SmallLane one(lookups, rows, options.threads), two(2 * lookups, rows, options.threads);
  for (int repetition = 0; repetition <= options.repetitions; ++repetition) {
    one.pass(repetition > 0);
    two.pass(repetition > 0);
  }
  const double once = 2 * one.seconds() - two.seconds();
  // Other work on the machine can disturb one of them alone, beyond what a share can be.
  return {{"lookups", lookups},
          {"threads", options.threads},
          {"rows", rows},
          {"in_cache", in_cache},
          {"seconds", one.seconds()},
          {"paid_once", std::clamp(once / one.seconds(), 0.0, 1.0)}};
}

/// Prints the time of steps of few lookups, of rows in a cache and not, and the share of it that is
/// paid once whatever a step looks up.
void run_small(const CommonOptions& options) {
  constexpr std::int64_t kRowsInCache = 2000, kRowsInMemory = 2'000'000;
  const Table table({{"lookups", "lookups", -10},
                     {"rows", "rows", -10},
                     {"seconds", "us a step", 12, 1, 1e6},
                     {"ns_per_lookup", "ns a lookup", 12, 1},
                     {"paid_once", "% paid once", 12, 0, 100}});
  table.begin(options.json, fmt::format("{} tables x 32, {} ids a sample, {} threads\n", kTables,
                                        kIdsOfSample, options.threads));
  for (const bool in_cache : {true, false}) {
    const std::int64_t rows =
        in_cache ? kRowsInCache : (options.rows > 0 ? options.rows : kRowsInMemory);
    for (const std::int32_t lookups : {100, 1000, 10'000, 100'000}) {
      const Json figures = measure_small(lookups, in_cache, rows, options);
      table.print(options.json, figures,
                  {{"ns_per_lookup", figures["seconds"].get<double>() * 1e9 / lookups}});
    }
  }
}

}  // namespace

Command add_small(CLI::App& app, CommonOptions& common) {
  CLI::App* command = app.add_subcommand(
      "small", "Steps of few lookups, and the share of their time that is paid once");
  return CommonAdder(*command, common)
      .threads()
      .repetitions(5)
      .rows("2000000, of tables that no cache holds")
      .json()
      .runs([&common] { run_small(common); });
}

}  // namespace embertable::bench
