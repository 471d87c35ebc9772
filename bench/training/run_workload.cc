#include "bench/training/run_workload.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "bench/loads/memory_need.h"
#include "bench/machine/machine.h"

namespace embertable::bench {
namespace {

/// Lookups per second, given seconds for one pass.
class PassRate {
 public:
  explicit PassRate(const LoadResult& result) : lookups_(static_cast<double>(result.lookups)) {}
  double operator()(double seconds) const { return lookups_ / seconds; }
  double millions(double seconds) const { return lookups_ / seconds * 1e-6; }
  double ns_per_lookup(double seconds) const { return seconds / lookups_ * 1e9; }

 private:
  double lookups_;
};

std::string heading(const WorkloadResult& workload) {
  const Load& load = workload.load;
  const LoadTable& table = load.tables.front();
  std::string text = fmt::format(
      "{}: {}\n  {} x {} rows x {}, {} samples, {} batches, {:.1f}M lookups a pass, {} threads, "
      "median of {}\n",
      load.name, load.description, load.tables.size(), table.rows, table.dim, load.samples,
      load.batches, static_cast<double>(workload.result.lookups) * 1e-6, workload.options.threads,
      workload.options.repetitions);
  if (table.rows != workload.standard_rows)
    text += fmt::format("  not the standard {} rows a table\n", workload.standard_rows);
  if (table.row_type != RowType::kFloat32)
    text += fmt::format("  rows of {}, in the bare loops too\n", to_string(table.row_type));
  return text + other_load_line(workload.result.other_load);
}

}  // namespace

WorkloadResult run_workload(const Load& standard, const BenchOptions& options) {
  Load load = sized_load(standard, options.rows, options.batches);
  for (LoadTable& table : load.tables) table.row_type = options.row_type;
  return {
      .load = load,
      .standard_rows = standard.tables.front().rows,
      .options = options,
      .result = run_load(load, options.threads, options.repetitions, Between::kOtherWork, true)};
}

std::string to_text(const WorkloadResult& workload) {
  const PassRate rate(workload.result);
  const LaneSeconds& lane = workload.result.seconds;
  const LimitSeconds& limits = workload.result.limits;
  std::string text = heading(workload);
  text += fmt::format("  {:<10} {:>8} {:>9} {:>8}   {:>13}   {:>8} {:>8} {:>9}\n", "", "forward",
                      "backward", "step", "of limit  all", "enqueue", "forward", "backward");
  text += fmt::format("  {:<10} {:>8} {:>9} {:>8}   {:>13}   {:>27}\n", "", "M/s", "M/s", "M/s", "",
                      "ns per lookup");
  text += fmt::format(
      "  {:<10} {:8.1f} {:9.1f} {:8.1f}   {:6.2f} {:6.2f}   {:8.2f} {:8.2f} {:9.2f}\n",
      "embertable", rate.millions(lane.stages.forward), rate.millions(lane.stages.backward),
      rate.millions(lane.step), limits.step() / lane.step, limits.step_all() / lane.step,
      rate.ns_per_lookup(lane.stages.enqueue), rate.ns_per_lookup(lane.stages.forward),
      rate.ns_per_lookup(lane.stages.backward));
  return text + fmt::format(
                    "  {:<10} {:8.1f} {:9.1f} {:8.1f}   rows read; rows read and written\n"
                    "  {:<10} {:8.1f} {:9.1f} {:8.1f}   also activations written; also slots and "
                    "gradients\n",
                    "limit", rate.millions(limits.gather), rate.millions(limits.update),
                    rate.millions(limits.step()), "all bytes", rate.millions(limits.gather_all),
                    rate.millions(limits.update_all), rate.millions(limits.step_all()));
}

std::string to_json(const WorkloadResult& workload) {
  const PassRate rate(workload.result);
  const LaneSeconds& lane = workload.result.seconds;
  const LimitSeconds& limits = workload.result.limits;
  return nlohmann::ordered_json{{"workload", workload.load.name},
                                {"machine", machine_name()},
                                {"threads", workload.options.threads},
                                {"rows", workload.load.tables.front().rows},
                                {"standard_rows", workload.standard_rows},
                                {"row_type", to_string(workload.load.tables.front().row_type)},
                                {"batches", workload.load.batches},
                                {"repetitions", workload.options.repetitions},
                                {"lookups", workload.result.lookups},
                                {"other_load", workload.result.other_load},
                                {"forward", rate(lane.stages.forward)},
                                {"backward", rate(lane.stages.backward)},
                                {"step", rate(lane.step)},
                                {"gather_limit", rate(limits.gather)},
                                {"rmw_limit", rate(limits.update)},
                                {"step_limit", rate(limits.step())},
                                {"step_limit_all_bytes", rate(limits.step_all())},
                                {"stages",
                                 {{"enqueue", rate.ns_per_lookup(lane.stages.enqueue)},
                                  {"forward", rate.ns_per_lookup(lane.stages.forward)},
                                  {"backward", rate.ns_per_lookup(lane.stages.backward)},
                                  {"step", rate.ns_per_lookup(lane.step)}}}}
      .dump();
}

}  // namespace embertable::bench
