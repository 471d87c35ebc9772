// embertable-bench stages: where the time of a step goes.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/gradients.h"
#include "bench/load_bench.h"
#include "bench/load_lane.h"
#include "bench/median.h"
#include "kernels/stage_clock.h"

namespace embertable::bench {
namespace {

/// Nanoseconds per lookup of wall time: those of the workers shared evenly among all of them.
struct StageTimes {
  double enqueue = 0, forward = 0, backward = 0;  ///< as the caller sees them
  double look_up = 0, scatter = 0, group = 0, sum_and_update = 0;
};

/// Numbers per lookup of a load's batches.
struct PerLookup {
  double outputs = 0, named = 0;
};

/// One engine whose stages are timed, pass by pass.
class StageLane {
 public:
  /// What is given is borrowed.
  StageLane(const Load& load, const std::vector<LoadBatch>& batches,
            const GradientBuffers& gradients, int threads,
            const std::optional<Optimizer>& optimizer)
      : lane_(load, batches, gradients.buffers(), {.threads = threads, .optimizer = optimizer}),
        batches_(batches.size()),
        gradients_(gradients.buffers().size()),
        threads_(threads),
        lookups_(static_cast<double>(count_lookups(batches))) {}

  void pass(bool counts) {
    StageSeconds pass;
    time_stages(true);
    for (std::size_t b = 0; b < batches_; ++b, ++done_) pass += lane_.step(b, done_ % gradients_);
    time_stages(false);
    std::vector<double> seconds = {pass.enqueue, pass.forward, pass.backward};
    for (const Stage stage : {Stage::kLookUp, Stage::kScatter, Stage::kGroup, Stage::kSumAndUpdate})
      seconds.push_back(take_stage_seconds(stage) / threads_);
    for (std::size_t i = 0; counts && i < seconds.size(); ++i)
      ns_[i].push_back(seconds[i] * 1e9 / lookups_);
  }

  /// Medians over the passes that count.
  StageTimes times() const {
    std::vector<double> m;
    for (const std::vector<double>& of : ns_) m.push_back(median(of));
    return {m[0], m[1], m[2], m[3], m[4], m[5], m[6]};
  }

 private:
  LoadLane lane_;
  std::size_t batches_, gradients_, done_ = 0;
  int threads_;
  double lookups_;
  std::vector<double> ns_[7];
};

PerLookup count(const Load& load, const std::vector<LoadBatch>& batches) {
  const auto lookups = static_cast<double>(count_lookups(batches));
  PerLookup per;
  std::vector<std::int64_t> rows;
  double named = 0;
  for (const LoadBatch& batch : batches) {
    for (const LoadIds& ids : batch) {  // one feature a table
      rows = ids.ids;
      std::sort(rows.begin(), rows.end());
      named += static_cast<double>(std::unique(rows.begin(), rows.end()) - rows.begin());
    }
  }
  per.named = named / lookups;
  per.outputs = static_cast<double>(load.samples) * static_cast<double>(load.features.size()) *
                static_cast<double>(batches.size()) / lookups;
  return per;
}

/// A stage, its ns and its bytes per lookup: what it reads and what it writes, once for each time
/// that it does, whichever cache they come from. A line that is written is read before.
struct Line {
  const char* stage;
  double ns, bytes;
};

std::vector<Line> lines_of(const Load& load, const PerLookup& per, const StageTimes& full,
                           const StageTimes& idle) {
  const double row = 4.0 * load.tables.front().dim;
  const bool one_hot = load.features.front().max_ids == 1;
  const double splits = one_hot ? 0 : 8 * per.outputs;
  const double sum = std::min(std::max(idle.sum_and_update, 0.0), full.sum_and_update);
  return {
      {"validate and copy", full.enqueue, 8 + 8 * per.outputs + 2 * (4 + splits)},
      {"gather and combine", full.look_up, 4 + splits + row + 2 * row * per.outputs},
      {"scatter", full.scatter, full.scatter == 0 ? 0 : 4 + splits + 2 * 8},
      {"group", full.group, full.group == 0 ? 0 : 8 + (row + 64) * per.named},
      {"sum", sum, 4 + row},
      {"update", full.sum_and_update - sum, 2 * (row + 4) * per.named},
      {"waiting, lists",
       full.forward + full.backward - full.look_up - full.scatter - full.group -
           full.sum_and_update,
       0},
  };
}

void print(const Load& load, int threads, const std::vector<Line>& lines, bool json) {
  double ns = 0, bytes = 0;
  for (const Line& line : lines) ns += line.ns, bytes += line.bytes;
  if (json) {
    nlohmann::ordered_json out;
    out["workload"] = load.name;
    out["threads"] = threads;
    out["rows"] = load.tables.front().rows;
    for (const Line& line : lines)
      out["stages"][line.stage] = {{"ns", line.ns}, {"bytes", line.bytes}};
    std::puts(out.dump().c_str());
    return;
  }
  std::printf("%s, %zu x %lld rows x %d, %d threads: %.2f ns a lookup\n", load.name.c_str(),
              load.tables.size(), static_cast<long long>(load.tables.front().rows),
              load.tables.front().dim, threads, ns);
  std::printf("  %-20s %8s %7s %8s %8s\n", "", "ns", "share", "bytes", "GB/s");
  for (const Line& line : lines) {
    std::printf("  %-20s %8.2f %6.0f%% %8.0f", line.stage, line.ns, line.ns / ns * 100, line.bytes);
    std::puts(line.bytes > 0 && line.ns > 0 ? fmt::format(" {:8.1f}", line.bytes / line.ns).c_str()
                                            : "");
  }
  std::printf("  %-20s %8.2f %6.0f%% %8.0f\n", "step", ns, 100.0, bytes);
}

}  // namespace

void run_stages(const Workload& workload, int threads, int repetitions, bool json) {
  Load load = load_of(workload);
  make_fit(load);
  const std::vector<LoadBatch> batches = make_load_batches(load);
  const GradientBuffers gradients(load.output_floats(), kGradientBytes);
  StageLane full(load, batches, gradients, threads, std::nullopt),
      idle(load, batches, gradients, threads, idle_optimizer());
  for (int repetition = 0; repetition <= repetitions; ++repetition) {
    full.pass(repetition > 0);
    idle.pass(repetition > 0);
  }
  print(load, threads, lines_of(load, count(load, batches), full.times(), idle.times()), json);
  std::fflush(stdout);
}

}  // namespace embertable::bench
