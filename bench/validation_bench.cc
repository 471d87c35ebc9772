#include "bench/validation_bench.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <array>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>
#include <vector>

#include "bench/median.h"
#include "bench/other_load.h"

namespace embertable::bench {
namespace {

/// The engine of the library without checks. The library stays loaded: its threads may outlive it.
std::unique_ptr<Lane> make_unchecked_lane(const LaneInput& input) {
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
  const std::filesystem::path path = program.parent_path() / "embertable-bench-unchecked.so";
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  using Make = Lane* (*)(const LaneInput*);
  const auto make = reinterpret_cast<Make>(dlsym(library, "embertable_unchecked_lane"));
  if (make == nullptr) throw std::runtime_error(dlerror());
  return std::unique_ptr<Lane>(make(&input));
}

double median_cost(const TimedLane& checked, const TimedLane& unchecked) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < checked.passes().size(); ++i)
    ratios.push_back(checked.passes()[i].step() / unchecked.passes()[i].step());
  return median(std::move(ratios)) - 1;
}

double ns_per_lookup(const ValidationResult& result, double seconds) {
  return seconds / static_cast<double>(result.lookups) * 1e9;
}

}  // namespace

ValidationResult run_validation(const Workload& standard, const BenchOptions& options) {
  ValidationResult result;
  result.workload = chosen_workload(standard, options);
  result.threads = options.threads;
  result.repetitions = options.repetitions;
  const Workload& workload = result.workload;
  const LaneData data(workload, options.threads);
  const LaneInput& input = data.input();
  result.lookups = count_lookups(input.batches);
  {
    TimedLane checked(make_engine_lane(input));
    TimedLane unchecked(make_unchecked_lane(input));
    const OtherLoad other_load;
    std::size_t steps = 0;
    for (int repetition = 0; repetition <= options.repetitions; ++repetition) {
      for (std::size_t batch = 0; batch < input.batches.size(); ++batch, ++steps) {
        const std::size_t gradient = steps % input.gradients.size();
        const bool checked_first = (steps + static_cast<std::size_t>(repetition)) % 2 == 0;
        (checked_first ? checked : unchecked).step(batch, gradient);
        (checked_first ? unchecked : checked).step(batch, gradient);
      }
      checked.end_pass(repetition > 0);
      unchecked.end_pass(repetition > 0);
    }
    result.checked = checked.median().value();
    result.unchecked = unchecked.median().value();
    result.cost = median_cost(checked, unchecked);
    result.other_load = other_load.share();
  }
  Team team(options.threads);
  const PlainTables tables(workload, team);
  Limits limits(workload, input.batches, input.gradients, tables, input.activations, team);
  for (int repetition = 0; repetition < options.repetitions; ++repetition) limits.run();
  result.limits = limits.median();
  return result;
}

std::string to_text(const ValidationResult& result) {
  const Workload& w = result.workload;
  const auto line = [&](const char* name, const LaneSeconds& lane) {
    return fmt::format(
        "  {:<10} {:8.2f} {:8.2f} {:9.2f} {:8.2f}\n", name,
        ns_per_lookup(result, lane.stages.enqueue), ns_per_lookup(result, lane.stages.forward),
        ns_per_lookup(result, lane.stages.backward), ns_per_lookup(result, lane.step));
  };
  std::string text =
      fmt::format("{}: {} x {} rows x {}, {} samples, {} threads, median of {}; ns per lookup\n",
                  w.name, w.tables, w.rows, w.dim, w.samples, result.threads, result.repetitions);
  text += fmt::format("  {:<10} {:>8} {:>8} {:>9} {:>8}\n", "", "enqueue", "forward", "backward",
                      "step");
  text += line("checked", result.checked) + line("unchecked", result.unchecked);
  text += fmt::format(
      "  validation: {:+.1f} % of a step; limits of the machine: {:.2f} rows, {:.2f} all bytes\n",
      result.cost * 100, ns_per_lookup(result, result.limits.gather + result.limits.update),
      ns_per_lookup(result, result.limits.gather_all + result.limits.update_all));
  if (result.other_load > 0.05)
    text += fmt::format("  other processes took {:.0f} % of the machine meanwhile\n",
                        result.other_load * 100);
  return text;
}

std::string to_json(const ValidationResult& result) {
  const auto lane = [&](const LaneSeconds& seconds) {
    return nlohmann::ordered_json{{"enqueue", ns_per_lookup(result, seconds.stages.enqueue)},
                                  {"forward", ns_per_lookup(result, seconds.stages.forward)},
                                  {"backward", ns_per_lookup(result, seconds.stages.backward)},
                                  {"step", ns_per_lookup(result, seconds.step)}};
  };
  const nlohmann::ordered_json json = {
      {"workload", result.workload.name},
      {"rows", result.workload.rows},
      {"threads", result.threads},
      {"repetitions", result.repetitions},
      {"lookups", result.lookups},
      {"checked", lane(result.checked)},
      {"unchecked", lane(result.unchecked)},
      {"validation_cost", result.cost},
      {"limit", ns_per_lookup(result, result.limits.gather + result.limits.update)},
      {"limit_all_bytes",
       ns_per_lookup(result, result.limits.gather_all + result.limits.update_all)},
      {"other_load", result.other_load}};
  return json.dump();
}

}  // namespace embertable::bench
