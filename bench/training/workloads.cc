#include "bench/training/workloads.h"

#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "bench/commands/report.h"
#include "bench/loads/memory_need.h"
#include "bench/loads/standard_loads.h"
#include "bench/machine/machine.h"
#include "bench/training/compare.h"
#include "bench/training/run_load.h"

namespace embertable::bench {
namespace {

std::string to_text(const Load& load, const LoadResult& result, const CommonOptions& options,
                    bool steps_alone) {
  const LoadTable& table = load.tables.front();
  const LimitSeconds& limits = result.limits;
  const auto rate = [&](double seconds) { return result.rate(seconds) * 1e-6; };
  const auto rates = [&](const char* name, double forward, double backward, double step) {
    return fmt::format("  {:<10} {:8.1f} {:9.1f} {:8.1f}", name, rate(forward), rate(backward),
                       rate(step));
  };
  std::string text = fmt::format(
      "{}: {}\n  {} x {} rows x {}, {} samples, {} batches, {:.1f}M lookups a pass, {} threads, "
      "median of {} {}\n",
      load.name, load.description, load.tables.size(), table.rows, table.dim, load.samples,
      load.batches, static_cast<double>(result.lookups) * 1e-6, options.threads, result.passes,
      result.passes == 1 ? "pass" : "passes");
  const std::int64_t standard_rows = find_standard_load(load.name).tables.front().rows;
  if (table.rows != standard_rows)
    text += fmt::format("  not the standard {} rows a table\n", standard_rows);
  if (table.row_type != RowType::kFloat32)
    text += fmt::format("  rows of {}, in the bare loops too\n", to_string(table.row_type));
  if (steps_alone) text += "  no other bytes move between two steps\n";
  text += other_load_line(result.other_load) + result.changed_line.line();
  text += fmt::format("  {:<10} {:>8} {:>9} {:>8}   {:>20}   {:>8} {:>8} {:>9}\n", "", "forward",
                      "backward", "step", "of limit  all  turns", "enqueue", "forward", "backward");
  text += fmt::format("  {:<10} {:>8} {:>9} {:>8}   {:>20}   {:>27}\n", "", "M/s", "M/s", "M/s", "",
                      "ns per lookup");
  const StageSeconds& stages = result.seconds.stages;
  const double step = result.seconds.step;
  text += rates("embertable", stages.forward, stages.backward, step);
  text += fmt::format(
      "   {:6.2f} {:6.2f} {:>6}   {:8.2f} {:8.2f} {:9.2f}\n", limits.step() / step,
      limits.step_all() / step, steps_alone ? "-" : fmt::format("{:.2f}", limits.turns / step),
      result.ns(stages.enqueue), result.ns(stages.forward), result.ns(stages.backward));
  text += rates("limit", limits.gather, limits.update, limits.step());
  text += "   rows read; rows read and written\n";
  text += rates("all bytes", limits.gather_all, limits.update_all, limits.step_all());
  text += "   also activations written; also slots and gradients\n";
  if (!steps_alone)
    text += fmt::format("  {:<10} {:>27.1f}   all bytes, batch by batch in turns with steps\n",
                        "in turns", rate(limits.turns));
  return text + "\n";
}

Json to_json(const Load& load, const LoadResult& result, const CommonOptions& options,
             bool steps_alone) {
  const LimitSeconds& limits = result.limits;
  const StageSeconds& stages = result.seconds.stages;
  Json figures = {{"workload", load.name},
                  {"machine", machine_name()},
                  {"threads", options.threads},
                  {"rows", load.tables.front().rows},
                  {"standard_rows", find_standard_load(load.name).tables.front().rows},
                  {"row_type", to_string(load.tables.front().row_type)},
                  {"batches", load.batches},
                  {"repetitions", options.repetitions},
                  {"lookups", result.lookups},
                  {"other_load", result.other_load},
                  {"changed_line_ns", {result.changed_line.least, result.changed_line.most}},
                  {"forward", result.rate(stages.forward)},
                  {"backward", result.rate(stages.backward)},
                  {"step", result.rate(result.seconds.step)},
                  {"gather_limit", result.rate(limits.gather)},
                  {"rmw_limit", result.rate(limits.update)},
                  {"step_limit", result.rate(limits.step())},
                  {"step_limit_all_bytes", result.rate(limits.step_all())},
                  {"stages",
                   {{"enqueue", result.ns(stages.enqueue)},
                    {"forward", result.ns(stages.forward)},
                    {"backward", result.ns(stages.backward)},
                    {"step", result.ns(result.seconds.step)}}}};
  if (steps_alone)
    figures["steps_alone"] = true;
  else
    figures["step_limit_in_turns"] = result.rate(limits.turns);
  return figures;
}

std::vector<RunRatios> read_stored(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) throw std::runtime_error("'" + path + "' cannot be read");
  return read_run(text.str(), path);
}

/// Prints how a run compares with the stored one. Returns false if a workload became slower.
bool report_comparison(const std::vector<RunRatios>& before, const std::string& now) {
  const RunComparison found = compare_runs(before, read_run(now, "this run"));
  for (const std::string& line : found.lines) std::fprintf(stderr, "%s\n", line.c_str());
  for (const std::vector<std::string>& moved : {found.slower, found.faster})
    for (const std::string& name : moved)
      std::fprintf(stderr, "%s moved by more than 10 %%\n", name.c_str());
  if (found.compared == 0)
    throw std::runtime_error("--compare: no workload ran as in the stored run");
  return found.slower.empty();
}

}  // namespace

std::vector<Load> chosen_workloads(const CommonOptions& options) {
  std::vector<std::string> names = options.workloads;
  if (names.empty())
    for (const Load& load : standard_loads()) names.push_back(load.name);
  std::vector<Load> loads;
  for (const std::string& name : names) {
    Load& load =
        loads.emplace_back(sized_load(find_standard_load(name), options.rows, options.batches));
    for (LoadTable& table : load.tables) table.row_type = parse_row_type(options.row_type);
  }
  return loads;
}

bool run_workloads(const CommonOptions& options, const std::string& stored, bool steps_alone) {
  std::vector<RunRatios> before;
  if (!stored.empty()) before = read_stored(stored);
  std::string now;
  for (const Load& load : chosen_workloads(options)) {
    const LoadResult result = run_load(load, options.threads, options.repetitions,
                                       {.in_turns = !steps_alone, .bare_rows = true});
    const Json figures = to_json(load, result, options, steps_alone);
    now += figures.dump() + "\n";
    print(options.json, figures, to_text(load, result, options, steps_alone));
  }
  return stored.empty() || report_comparison(before, now);
}

}  // namespace embertable::bench
