// embertable-bench small shows what a step costs that looks up few rows, and how much of that is
// paid once for the step whatever it looks up.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/machine/machine.h"
#include "bench/machine/timing.h"
#include "bench/training/lane.h"
#include "bench/training/run_load.h"

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
    lane_->step(0, 0);  // brings the caches back that another lane has used
    StageSeconds pass;
    for (std::size_t i = 0; i < steps_; ++i) pass += lane_->step(i % data_.batches.size(), i);
    if (counts) seconds_.push_back(pass.step() / static_cast<double>(steps_));
  }
  double seconds() const { return median(seconds_); }

 private:
  LoadData data_;
  std::unique_ptr<Lane> lane_;
  std::size_t steps_;
  std::vector<double> seconds_;
};

struct SmallStep {
  std::int32_t lookups;
  bool in_cache;
  double seconds;
  double paid_once;  ///< share of the seconds
};

/// Compares steps with steps that look up twice as much: what does not double is paid once.
SmallStep measure(std::int32_t lookups, bool in_cache, std::int64_t rows, int threads,
                  int repetitions) {
  SmallLane one(lookups, rows, threads), two(2 * lookups, rows, threads);
  for (int repetition = 0; repetition <= repetitions; ++repetition) {
    one.pass(repetition > 0);
    two.pass(repetition > 0);
  }
  const double once = 2 * one.seconds() - two.seconds();
  // Other work on the machine can disturb one of them alone, beyond what a share can be.
  return {lookups, in_cache, one.seconds(), std::clamp(once / one.seconds(), 0.0, 1.0)};
}

}  // namespace

void run_small(const BenchOptions& options, bool json) {
  constexpr std::int64_t kRowsInCache = 2000, kRowsInMemory = 2'000'000;
  if (!json)
    std::printf("%d tables x 32, %d ids a sample, %d threads\n%-10s %-10s %12s %12s %10s\n",
                kTables, kIdsOfSample, options.threads, "lookups", "rows", "us a step",
                "ns a lookup", "paid once");
  for (const bool in_cache : {true, false}) {
    const std::int64_t rows =
        in_cache ? kRowsInCache : (options.rows > 0 ? options.rows : kRowsInMemory);
    for (const std::int32_t lookups : {100, 1000, 10'000, 100'000}) {
      const SmallStep step = measure(lookups, in_cache, rows, options.threads, options.repetitions);
      if (json)
        std::puts(nlohmann::ordered_json{{"lookups", step.lookups},
                                         {"threads", options.threads},
                                         {"rows", rows},
                                         {"in_cache", step.in_cache},
                                         {"seconds", step.seconds},
                                         {"paid_once", step.paid_once}}
                      .dump()
                      .c_str());
      else
        std::printf("%-10d %-10s %12.1f %12.1f %9.0f%%\n", step.lookups,
                    in_cache ? "in cache" : "in memory", step.seconds * 1e6,
                    step.seconds * 1e9 / step.lookups, step.paid_once * 100);
      std::fflush(stdout);
    }
  }
}

}  // namespace embertable::bench
