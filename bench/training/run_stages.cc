// embertable-bench stages shows where the time of a step goes.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/loads/memory_need.h"
#include "bench/machine/timing.h"
#include "bench/training/lane.h"
#include "bench/training/run_load.h"
#include "bench/training/stage_lines.h"
#include "embertable/optimizer.h"
#include "kernels/stage_clock.h"

namespace embertable::bench {
namespace {

/// Returns a rule that touches nothing: an engine with it takes the time of a step without its
/// rule.
Optimizer idle_optimizer() {
  CustomRule rule;
  rule.function = CustomRule::Tiles([](const CustomTile&) {});
  return Optimizer::custom(rule);
}

/// One engine whose stages are timed, pass by pass.
class StageLane {
 public:
  /// Borrows the data.
  StageLane(const LoadData& data, int threads, const std::optional<Optimizer>& optimizer)
      : lane_(make_lane(data, threads, optimizer)),
        batches_(data.batches.size()),
        threads_(threads),
        lookups_(static_cast<double>(count_lookups(data.batches))) {}

  void pass(bool counts) {
    StageSeconds pass;
    time_stages(true);
    for (std::size_t b = 0; b < batches_; ++b, ++done_) pass += lane_->step(b, done_);
    time_stages(false);
    std::vector<double> seconds = {pass.enqueue, pass.forward, pass.backward};
    for (const StepStage stage :
         {StepStage::kLookUp, StepStage::kScatter, StepStage::kGroup, StepStage::kSumAndUpdate})
      seconds.push_back(take_stage_seconds(stage) / threads_);
    for (std::size_t i = 0; counts && i < seconds.size(); ++i)
      ns_[i].push_back(seconds[i] * 1e9 / lookups_);
  }

  /// Returns the medians over the passes that count.
  StageTimes times() const {
    std::vector<double> m;
    for (const std::vector<double>& of : ns_) m.push_back(median(of));
    return {m[0], m[1], m[2], m[3], m[4], m[5], m[6]};
  }

 private:
  std::unique_ptr<Lane> lane_;
  std::size_t batches_, done_ = 0;
  int threads_;
  double lookups_;
  std::vector<double> ns_[7];
};

StageShape shape_of(const LoadData& data) {
  const Load& load = data.load;
  const auto lookups = static_cast<double>(count_lookups(data.batches));
  std::size_t named = 0;
  for (const LoadBatch& batch : data.batches)
    for (const std::vector<std::uint32_t>& rows : named_rows(load, batch)) named += rows.size();
  return {.dim = static_cast<double>(load.tables.front().dim),
          .outputs = static_cast<double>(load.samples) * static_cast<double>(load.features.size()) *
                     static_cast<double>(data.batches.size()) / lookups,
          .named = static_cast<double>(named) / lookups,
          .one_hot = load.features.front().max_ids == 1};
}

void print_json(const Load& load, int threads, const StageTable& table) {
  nlohmann::ordered_json out;
  out["workload"] = load.name;
  out["threads"] = threads;
  out["rows"] = load.tables.front().rows;
  for (const StageLine& line : table.lines)
    out["stages"][line.stage] = {{"ns", line.ns}, {"bytes", line.bytes}};
  out["step"] = table.step_ns;
  out["notes"] = table.notes;
  std::puts(out.dump().c_str());
}

void print_text(const Load& load, int threads, const StageTable& table) {
  std::printf("%s, %zu x %lld rows x %d, %d threads: %.2f ns a lookup\n", load.name.c_str(),
              load.tables.size(), static_cast<long long>(load.tables.front().rows),
              load.tables.front().dim, threads, table.step_ns);
  std::printf("  %-20s %8s %7s %8s %8s\n", "", "ns", "share", "bytes", "GB/s");
  double bytes = 0;
  for (const StageLine& line : table.lines) {
    bytes += line.bytes;
    std::printf("  %-20s %8.2f %6.0f%% %8.0f", line.stage.c_str(), line.ns,
                line.ns / table.step_ns * 100, line.bytes);
    std::puts(line.bytes > 0 && line.ns > 0 ? fmt::format(" {:8.1f}", line.bytes / line.ns).c_str()
                                            : "");
  }
  std::printf("  %-20s %8.2f %6.0f%% %8.0f\n", "step", table.step_ns, 100.0, bytes);
  for (const std::string& note : table.notes) std::printf("  %s\n", note.c_str());
}

}  // namespace

void run_stages(const Load& standard, const BenchOptions& options, bool json) {
  Load load = sized_load(standard, options.rows, options.batches);
  for (LoadTable& table : load.tables) table.row_type = options.row_type;
  const LoadData data(load);
  StageLane full(data, options.threads, std::nullopt),
      idle(data, options.threads, idle_optimizer());
  for (int repetition = 0; repetition <= options.repetitions; ++repetition) {
    full.pass(repetition > 0);
    idle.pass(repetition > 0);
  }
  const StageTable table = divide_step(shape_of(data), full.times(), idle.times());
  json ? print_json(data.load, options.threads, table)
       : print_text(data.load, options.threads, table);
  std::fflush(stdout);
}

}  // namespace embertable::bench
