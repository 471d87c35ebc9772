#include "bench/training/run_validation.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>
#include <vector>

#include "bench/loads/memory_need.h"
#include "bench/machine/machine.h"
#include "bench/machine/timing.h"

namespace embertable::bench {
namespace {

/// Makes an engine of the library without checks. That library stays loaded, since its threads may
/// outlive the engine.
std::unique_ptr<Lane> make_unchecked_lane(const LoadData& data, int threads) {
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
  const std::filesystem::path path = program.parent_path() / "embertable-bench-unchecked.so";
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  using Make = Lane* (*)(const LoadData*, int);
  const auto make = reinterpret_cast<Make>(dlsym(library, "embertable_unchecked_lane"));
  if (make == nullptr) throw std::runtime_error(dlerror());
  return std::unique_ptr<Lane>(make(&data, threads));
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

ValidationResult run_validation(const Load& standard, const BenchOptions& options) {
  const LoadData data(sized_load(standard, options.rows, options.batches));
  ValidationResult result;
  result.load = data.load;
  result.threads = options.threads;
  result.repetitions = options.repetitions;
  result.lookups = count_lookups(data.batches);
  TimedLane checked(make_lane(data, options.threads));
  {
    TimedLane unchecked(make_unchecked_lane(data, options.threads));
    const OtherLoad other_load;
    std::size_t steps = 0;
    for (int repetition = 0; repetition <= options.repetitions; ++repetition) {
      for (std::size_t batch = 0; batch < data.batches.size(); ++batch, ++steps) {
        const bool checked_first = (steps + static_cast<std::size_t>(repetition)) % 2 == 0;
        (checked_first ? checked : unchecked).step_in_turn(batch, steps);
        (checked_first ? unchecked : checked).step_in_turn(batch, steps);
      }
      checked.end_pass(repetition > 0);
      unchecked.end_pass(repetition > 0);
    }
    result.checked = checked.median();
    result.unchecked = unchecked.median();
    result.cost = median_cost(checked, unchecked);
    result.other_load = other_load.share();
  }
  Limits limits(data, checked.lane().tables(), checked.lane().executor());
  for (int repetition = 0; repetition < options.repetitions; ++repetition) limits.run(true);
  result.limits = limits.median();
  return result;
}

std::string to_text(const ValidationResult& result) {
  const Load& load = result.load;
  const auto line = [&](const char* name, const LaneSeconds& lane) {
    return fmt::format(
        "  {:<10} {:8.2f} {:8.2f} {:9.2f} {:8.2f}\n", name,
        ns_per_lookup(result, lane.stages.enqueue), ns_per_lookup(result, lane.stages.forward),
        ns_per_lookup(result, lane.stages.backward), ns_per_lookup(result, lane.step));
  };
  std::string text =
      fmt::format("{}: {} x {} rows x {}, {} samples, {} threads, median of {}; ns per lookup\n",
                  load.name, load.tables.size(), load.tables.front().rows, load.tables.front().dim,
                  load.samples, result.threads, result.repetitions);
  text += fmt::format("  {:<10} {:>8} {:>8} {:>9} {:>8}\n", "", "enqueue", "forward", "backward",
                      "step");
  text += line("checked", result.checked) + line("unchecked", result.unchecked);
  text += fmt::format(
      "  validation: {:+.1f} % of a step; limits of the machine: {:.2f} rows, {:.2f} all bytes\n",
      result.cost * 100, ns_per_lookup(result, result.limits.step()),
      ns_per_lookup(result, result.limits.step_all()));
  return text + other_load_line(result.other_load);
}

std::string to_json(const ValidationResult& result) {
  const auto lane = [&](const LaneSeconds& seconds) {
    return nlohmann::ordered_json{{"enqueue", ns_per_lookup(result, seconds.stages.enqueue)},
                                  {"forward", ns_per_lookup(result, seconds.stages.forward)},
                                  {"backward", ns_per_lookup(result, seconds.stages.backward)},
                                  {"step", ns_per_lookup(result, seconds.step)}};
  };
  const nlohmann::ordered_json json = {
      {"workload", result.load.name},
      {"rows", result.load.tables.front().rows},
      {"threads", result.threads},
      {"repetitions", result.repetitions},
      {"lookups", result.lookups},
      {"checked", lane(result.checked)},
      {"unchecked", lane(result.unchecked)},
      {"validation_cost", result.cost},
      {"limit", ns_per_lookup(result, result.limits.step())},
      {"limit_all_bytes", ns_per_lookup(result, result.limits.step_all())},
      {"other_load", result.other_load}};
  return json.dump();
}

}  // namespace embertable::bench
