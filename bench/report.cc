#include "bench/report.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "bench/machine.h"

namespace embertable::bench {
namespace {

using Json = nlohmann::ordered_json;

/// Lookups per second, given seconds for one pass.
class PassRate {
 public:
  explicit PassRate(const WorkloadResult& result) : lookups_(static_cast<double>(result.lookups)) {}
  double operator()(double seconds) const { return lookups_ / seconds; }
  double millions(double seconds) const { return lookups_ / seconds * 1e-6; }
  double ns_per_lookup(double seconds) const { return seconds / lookups_ * 1e9; }

 private:
  double lookups_;
};

double step_limit(const LimitSeconds& limits) { return limits.gather + limits.update; }
double step_limit_all(const LimitSeconds& limits) { return limits.gather_all + limits.update_all; }

std::string heading(const WorkloadResult& result) {
  const Workload& w = result.workload;
  std::string text = fmt::format(
      "{}: {}\n  {} x {} rows x {}, {} samples, {} batches, {:.1f}M lookups a pass, {} threads, "
      "median of {}\n",
      w.name, w.description, w.tables, w.rows, w.dim, w.samples, w.batches,
      static_cast<double>(result.lookups) * 1e-6, result.threads, result.repetitions);
  if (w.rows != result.standard_rows) {
    text += fmt::format("  not the standard {} rows a table\n", result.standard_rows);
  }
  if (result.other_load > 0.05) {
    text += fmt::format("  other processes took {:.0f} % of the machine meanwhile\n",
                        result.other_load * 100);
  }
  return text;
}

std::string lane_line(const char* name, const std::optional<LaneSeconds>& lane,
                      const WorkloadResult& result) {
  if (!lane) return fmt::format("  {:<10} not run: this CPU lacks AVX-512\n", name);
  const PassRate rate(result);
  const StageSeconds& stages = lane->stages;
  return fmt::format(
      "  {:<10} {:8.1f} {:9.1f} {:8.1f}   {:6.2f} {:6.2f}   {:8.2f} {:8.2f} {:9.2f}\n", name,
      rate.millions(stages.forward), rate.millions(stages.backward), rate.millions(lane->step),
      step_limit(result.limits) / lane->step, step_limit_all(result.limits) / lane->step,
      rate.ns_per_lookup(stages.enqueue), rate.ns_per_lookup(stages.forward),
      rate.ns_per_lookup(stages.backward));
}

std::string limit_lines(const WorkloadResult& result) {
  const PassRate rate(result);
  const LimitSeconds& limits = result.limits;
  return fmt::format(
      "  {:<10} {:8.1f} {:9.1f} {:8.1f}   rows read; rows read and written\n"
      "  {:<10} {:8.1f} {:9.1f} {:8.1f}   also activations written; also slots and gradients\n",
      "limit", rate.millions(limits.gather), rate.millions(limits.update),
      rate.millions(step_limit(limits)), "all bytes", rate.millions(limits.gather_all),
      rate.millions(limits.update_all), rate.millions(step_limit_all(limits)));
}

/// Adds the lane's rates under prefixed names, null where it did not run.
void add_rates(Json& json, const std::string& prefix, const std::optional<LaneSeconds>& lane,
               const WorkloadResult& result) {
  const PassRate rate(result);
  json[prefix + "forward"] = lane ? Json(rate(lane->stages.forward)) : Json();
  json[prefix + "backward"] = lane ? Json(rate(lane->stages.backward)) : Json();
  json[prefix + "step"] = lane ? Json(rate(lane->step)) : Json();
}

Json stages_of(const std::optional<LaneSeconds>& lane, const WorkloadResult& result) {
  if (!lane) return {};
  const PassRate rate(result);
  return {{"enqueue", rate.ns_per_lookup(lane->stages.enqueue)},
          {"forward", rate.ns_per_lookup(lane->stages.forward)},
          {"backward", rate.ns_per_lookup(lane->stages.backward)},
          {"step", rate.ns_per_lookup(lane->step)}};
}

}  // namespace

std::string to_text(const WorkloadResult& result) {
  std::string text = heading(result);
  text += fmt::format("  {:<10} {:>8} {:>9} {:>8}   {:>13}   {:>8} {:>8} {:>9}\n", "", "forward",
                      "backward", "step", "of limit  all", "enqueue", "forward", "backward");
  text += fmt::format("  {:<10} {:>8} {:>9} {:>8}   {:>13}   {:>27}\n", "", "M/s", "M/s", "M/s", "",
                      "ns per lookup");
  text += lane_line("embertable", result.engine, result);
  text += lane_line("baseline", result.baseline, result);
  text += limit_lines(result);
  if (result.engine && result.baseline) {
    text += fmt::format("  embertable / baseline: {:.2f}\n",
                        result.baseline->step / result.engine->step);
  }
  return text;
}

std::string to_json(const WorkloadResult& result) {
  const PassRate rate(result);
  const LimitSeconds& limits = result.limits;
  Json json;
  json["workload"] = result.workload.name;
  json["machine"] = machine_name();
  json["threads"] = result.threads;
  json["rows"] = result.workload.rows;
  json["standard_rows"] = result.standard_rows;
  json["batches"] = result.workload.batches;
  json["repetitions"] = result.repetitions;
  json["lookups"] = result.lookups;
  json["other_load"] = result.other_load;
  add_rates(json, "", result.engine, result);
  add_rates(json, "prototype_", result.baseline, result);
  json["gather_limit"] = rate(limits.gather);
  json["rmw_limit"] = rate(limits.update);
  json["step_limit"] = rate(step_limit(limits));
  json["step_limit_all_bytes"] = rate(step_limit_all(limits));
  json["stages"] = stages_of(result.engine, result);
  json["prototype_stages"] = stages_of(result.baseline, result);
  return json.dump();
}

}  // namespace embertable::bench
