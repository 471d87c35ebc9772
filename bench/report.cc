#include "bench/report.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

namespace embertable::bench {
namespace {

using Rate = std::optional<double>;

/// Lookups per second of a result.
struct Rates {
  explicit Rates(const WorkloadResult& result)
      : lookups(static_cast<double>(result.lookups)),
        gather(lookups / result.limits.gather),
        update(lookups / result.limits.update),
        step(lookups / (result.limits.gather + result.limits.update)),
        step_all(lookups / (result.limits.gather_all + result.limits.update_all)) {}

  double lookups;
  double gather;
  double update;
  double step;      ///< both loops in turn, bare rows
  double step_all;  ///< both loops in turn, all bytes
};

Rate lane_rate(const WorkloadResult& result, const std::optional<LaneSeconds>& lane,
               double (*seconds)(const LaneSeconds&)) {
  if (!lane) return std::nullopt;
  return static_cast<double>(result.lookups) / seconds(*lane);
}

double forward_seconds(const LaneSeconds& lane) { return lane.stages.forward; }
double backward_seconds(const LaneSeconds& lane) { return lane.stages.backward; }
double step_seconds(const LaneSeconds& lane) { return lane.step; }

nlohmann::ordered_json number(const Rate& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

nlohmann::ordered_json stages(const WorkloadResult& result,
                              const std::optional<LaneSeconds>& lane) {
  if (!lane) return nullptr;
  const double ns = 1e9 / static_cast<double>(result.lookups);
  return {{"enqueue", lane->stages.enqueue * ns},
          {"forward", lane->stages.forward * ns},
          {"backward", lane->stages.backward * ns},
          {"step", lane->step * ns}};
}

std::string lane_line(const char* name, const std::optional<LaneSeconds>& lane,
                      const Rates& rates) {
  if (!lane) return fmt::format("  {:<10} not run: this CPU lacks AVX-512\n", name);
  const double ns = 1e9 / rates.lookups;
  const double step = rates.lookups / lane->step;
  return fmt::format(
      "  {:<10} {:8.1f} {:9.1f} {:8.1f}   {:6.2f} {:6.2f}   {:8.2f} {:8.2f} {:9.2f}\n", name,
      rates.lookups / lane->stages.forward * 1e-6, rates.lookups / lane->stages.backward * 1e-6,
      step * 1e-6, step / rates.step, step / rates.step_all, lane->stages.enqueue * ns,
      lane->stages.forward * ns, lane->stages.backward * ns);
}

}  // namespace

std::string to_text(const WorkloadResult& result) {
  const Workload& w = result.workload;
  const Rates rates(result);
  std::string text = fmt::format(
      "{}: {}\n  {} x {} rows x {}, {} samples, {} batches, {:.1f}M lookups a pass, {} threads, "
      "median of {}\n",
      w.name, w.description, w.tables, w.rows, w.dim, w.samples, w.batches, rates.lookups * 1e-6,
      result.threads, result.repetitions);
  if (result.other_load > 0.05) {
    text += fmt::format("  other processes took {:.0f} % of the machine meanwhile\n",
                        result.other_load * 100);
  }
  if (w.rows != result.standard_rows) {
    text += fmt::format("  not the standard {} rows a table\n", result.standard_rows);
  }
  text += fmt::format("  {:<10} {:>8} {:>9} {:>8}   {:>13}   {:>8} {:>8} {:>9}\n", "", "forward",
                      "backward", "step", "of limit  all", "enqueue", "forward", "backward");
  text += fmt::format("  {:<10} {:>8} {:>9} {:>8}   {:>13}   {:>27}\n", "", "M/s", "M/s", "M/s", "",
                      "ns per lookup");
  text += lane_line("embertable", result.engine, rates);
  text += lane_line("baseline", result.baseline, rates);
  text += fmt::format("  {:<10} {:8.1f} {:9.1f} {:8.1f}   bare rows read; read and written\n",
                      "limit", rates.gather * 1e-6, rates.update * 1e-6, rates.step * 1e-6);
  text +=
      fmt::format("  {:<10} {:8.1f} {:9.1f} {:8.1f}   also activations written; slots, gradients\n",
                  "all bytes", rates.lookups / result.limits.gather_all * 1e-6,
                  rates.lookups / result.limits.update_all * 1e-6, rates.step_all * 1e-6);
  if (result.engine && result.baseline) {
    text += fmt::format("  embertable / baseline: {:.2f}\n",
                        result.baseline->step / result.engine->step);
  }
  return text;
}

std::string to_json(const WorkloadResult& result) {
  const Rates rates(result);
  const nlohmann::ordered_json json = {
      {"workload", result.workload.name},
      {"threads", result.threads},
      {"rows", result.workload.rows},
      {"standard_rows", result.standard_rows},
      {"batches", result.workload.batches},
      {"repetitions", result.repetitions},
      {"lookups", result.lookups},
      {"other_load", result.other_load},
      {"forward", number(lane_rate(result, result.engine, forward_seconds))},
      {"backward", number(lane_rate(result, result.engine, backward_seconds))},
      {"step", number(lane_rate(result, result.engine, step_seconds))},
      {"prototype_forward", number(lane_rate(result, result.baseline, forward_seconds))},
      {"prototype_backward", number(lane_rate(result, result.baseline, backward_seconds))},
      {"prototype_step", number(lane_rate(result, result.baseline, step_seconds))},
      {"gather_limit", rates.gather},
      {"rmw_limit", rates.update},
      {"step_limit", rates.step},
      {"step_limit_all_bytes", rates.step_all},
      {"stages", stages(result, result.engine)},
      {"prototype_stages", stages(result, result.baseline)}};
  return json.dump();
}

}  // namespace embertable::bench
