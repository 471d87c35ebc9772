// embertable-bench stages shows where the time of a step goes.
#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "base/cache.h"
#include "base/rows.h"
#include "bench/commands/commands.h"
#include "bench/commands/report.h"
#include "bench/machine/timing.h"
#include "bench/training/lane.h"
#include "bench/training/stage_lines.h"
#include "bench/training/workloads.h"
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
      : lane_(make_lane(data, threads, optimizer)), data_(data), threads_(threads) {}

  void pass(bool counts) {
    time_stages(true);
    for (std::size_t b = 0; b < data_.batches.size(); ++b) lane_.step(b);
    time_stages(false);
    const StageSeconds pass = lane_.end_pass(false);
    std::vector<double> seconds = {pass.enqueue, pass.forward, pass.backward};
    for (const StepStage stage :
         {StepStage::kLookUp, StepStage::kScatter, StepStage::kGroup, StepStage::kSumAndUpdate})
      seconds.push_back(take_stage_seconds(stage) / threads_);
    const auto lookups = static_cast<double>(count_lookups(data_.batches));
    for (std::size_t i = 0; counts && i < seconds.size(); ++i)
      ns_[i].push_back(seconds[i] * 1e9 / lookups);
  }

  /// Returns the medians over the passes that count.
  StageTimes times() const {
    std::vector<double> m;
    for (const std::vector<double>& of : ns_) m.push_back(median(of));
    return {m[0], m[1], m[2], m[3], m[4], m[5], m[6]};
  }

 private:
  Lane lane_;
  const LoadData& data_;
  int threads_;
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
          .one_hot = load.features.front().max_ids == 1,
          .stored_bytes = static_cast<double>(bytes_per_element(load.tables.front().row_type)),
          .grouping_fetches = !fetches_through_level2()};
}

/// Prints the times of the stages of a load's steps, and how many bytes each moves for a lookup.
void run_stages(const Load& load, const CommonOptions& options) {
  const LoadData data(load);
  StageLane full(data, options.threads, std::nullopt),
      idle(data, options.threads, idle_optimizer());
  for (int repetition = 0; repetition <= options.repetitions; ++repetition) {
    full.pass(repetition > 0);
    idle.pass(repetition > 0);
  }
  const StageTable stages = divide_step(shape_of(data), full.times(), idle.times());
  const Table table({{"stage", "", -20},
                     {"ns", "ns", 8, 2},
                     {"share", "% of step", 10, 0, 100},
                     {"bytes", "bytes", 8, 0},
                     {"gb_per_second", "GB/s", 8, 1}});
  const LoadTable& first = load.tables.front();
  Json figures = {{"workload", load.name},
                  {"threads", options.threads},
                  {"rows", first.rows},
                  {"row_type", to_string(first.row_type)}};
  std::string text =
      fmt::format("{}, {} x {} rows x {} of {}, {} threads: {:.2f} ns a lookup\n{}", load.name,
                  load.tables.size(), first.rows, first.dim, to_string(first.row_type),
                  options.threads, stages.step_ns, table.heading());
  const auto add_line = [&](const StageLine& line) {
    const bool moves = line.bytes > 0 && line.ns > 0;
    text += table.line({{"stage", line.stage},
                        {"ns", line.ns},
                        {"share", line.ns / stages.step_ns},
                        {"bytes", line.bytes},
                        {"gb_per_second", moves ? Json(line.bytes / line.ns) : Json()}});
  };
  double bytes = 0;
  for (const StageLine& line : stages.lines) {
    figures["stages"][line.stage] = {{"ns", line.ns}, {"bytes", line.bytes}};
    add_line(line);
    bytes += line.bytes;
  }
  figures["step"] = stages.step_ns;
  figures["notes"] = stages.notes;
  add_line({"step", stages.step_ns, bytes});
  for (const std::string& note : stages.notes) text += "  " + note + "\n";
  print(options.json, figures, text);
}

}  // namespace

Command add_stages(CLI::App& app, CommonOptions& common) {
  CLI::App* command = app.add_subcommand(
      "stages", "Where the time of a step goes, and the bytes that each stage moves for a lookup");
  return CommonAdder(*command, common).all_of_workloads().runs([&common] {
    for (const Load& load : chosen_workloads(common)) run_stages(load, common);
  });
}

}  // namespace embertable::bench
