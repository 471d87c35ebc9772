#include "bench/training/compare.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "bench/machine/machine.h"

namespace embertable::bench {
namespace {

/// A ratio has moved if it changes by more than this.
constexpr double kMoved = 0.10;

double positive(const nlohmann::json& run, const char* key) {
  const auto value = run.at(key).get<double>();
  if (!(value > 0) || !std::isfinite(value))
    throw std::runtime_error(fmt::format("'{}' must be above 0, got {}", key, value));
  return value;
}

RunRatios ratios_of(const std::string& line) {
  const auto run = nlohmann::json::parse(line);
  const double step = positive(run, "step");
  return {.workload = run.at("workload").get<std::string>(),
          .threads = run.at("threads").get<std::int64_t>(),
          .rows = run.at("rows").get<std::int64_t>(),
          .batches = run.at("batches").get<std::int64_t>(),
          .row_type = run.value("row_type", std::string("float32")),
          .steps_alone = run.value("steps_alone", false),
          .machine = run.value("machine", std::string()),
          .other_load = run.value("other_load", 0.0),
          .limit = step / positive(run, "step_limit"),
          .all_bytes = step / positive(run, "step_limit_all_bytes")};
}

/// How the stored run's load differs, as "2 threads, were 1"; empty if it does not.
std::string other_load_shape(const RunRatios& before, const RunRatios& now) {
  std::vector<std::string> texts;
  const auto differs = [&](const char* format, const auto& is, const auto& was) {
    if (was != is) texts.push_back(fmt::format(fmt::runtime(format), is, was));
  };
  differs("{} threads, were {}", now.threads, before.threads);
  differs("{} rows a table, were {}", now.rows, before.rows);
  differs("{} batches, were {}", now.batches, before.batches);
  differs("rows of {}, were of {}", now.row_type, before.row_type);
  const auto steps = [](bool alone) {
    return std::string(alone ? "alone" : "with other work between");
  };
  differs("steps {}, were {}", steps(now.steps_alone), steps(before.steps_alone));
  return fmt::format("{}", fmt::join(texts, "; "));
}

void compare(const RunRatios& before, const RunRatios& now, RunComparison& into) {
  const double limit = now.limit / before.limit, all = now.all_bytes / before.all_bytes;
  const bool slower = limit < 1 - kMoved && all < 1 - kMoved;
  const bool faster = limit > 1 + kMoved && all > 1 + kMoved;
  const auto moved = [](double ratio) { return std::abs(ratio - 1) > kMoved; };
  const char* said = slower                       ? ": SLOWER"
                     : faster                     ? ": faster"
                     : moved(limit) || moved(all) ? ": one ratio alone"
                                                  : "";
  into.lines.push_back(
      fmt::format("{}, {} threads: of the limit {:.3f}, was {:.3f} ({:+.0f} %); of all bytes "
                  "{:.3f}, was {:.3f} ({:+.0f} %){}",
                  now.workload, now.threads, now.limit, before.limit, (limit - 1) * 100,
                  now.all_bytes, before.all_bytes, (all - 1) * 100, said));
  if (slower) into.slower.push_back(now.workload);
  if (faster) into.faster.push_back(now.workload);
  ++into.compared;
}

/// Adds a line that is not there yet.
void add_once(const std::string& line, std::vector<std::string>& lines) {
  if (std::ranges::find(lines, line) == lines.end()) lines.push_back(line);
}

/// Notes what else may have moved ratios: another machine, and other processes.
void add_notes(std::span<const RunRatios> before, std::span<const RunRatios> now,
               std::vector<std::string>& lines) {
  for (const RunRatios& was : before)
    for (const RunRatios& is : now)
      if (!was.machine.empty() && !is.machine.empty() && was.machine != is.machine)
        add_once(fmt::format("another machine: '{}', was '{}'; caches alone move ratios",
                             is.machine, was.machine),
                 lines);
  const auto disturbed = [&](std::span<const RunRatios> run, const char* name) {
    double most = 0;
    for (const RunRatios& one : run) most = std::max(most, one.other_load);
    if (most > kMostOtherLoad)
      lines.push_back(fmt::format("other processes took up to {:.0f} % of the machine in {}",
                                  most * 100, name));
  };
  disturbed(before, "the stored run");
  disturbed(now, "this run");
}

}  // namespace

std::vector<RunRatios> read_run(const std::string& text, const std::string& name) {
  std::vector<RunRatios> run;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (line.find_first_not_of(" \r\t") == std::string::npos) continue;
    try {
      run.push_back(ratios_of(line));
    } catch (const std::exception& error) {
      throw std::runtime_error(
          fmt::format("'{}', line {}: there must be a workload's object as --json prints it: {}",
                      name, number, error.what()));
    }
  }
  if (run.empty()) throw std::runtime_error("'" + name + "' holds no run");
  return run;
}

RunComparison compare_runs(std::span<const RunRatios> before, std::span<const RunRatios> now) {
  RunComparison comparison;
  for (const RunRatios& is : now) {
    const RunRatios* other = nullptr;
    const RunRatios* same = nullptr;
    for (const RunRatios& was : before) {
      if (was.workload != is.workload) continue;
      other = &was;
      if (other_load_shape(was, is).empty()) same = &was;
    }
    if (same != nullptr) {
      compare(*same, is, comparison);
    } else if (other != nullptr) {
      comparison.lines.push_back(
          fmt::format("{}: not compared: {}", is.workload, other_load_shape(*other, is)));
    } else {
      comparison.lines.push_back(is.workload + ": not in the stored run");
    }
  }
  for (const RunRatios& was : before) {
    const auto is_it = [&](const RunRatios& is) { return is.workload == was.workload; };
    if (std::ranges::none_of(now, is_it))
      add_once(was.workload + ": in the stored run alone", comparison.lines);
  }
  add_notes(before, now, comparison.lines);
  return comparison;
}

}  // namespace embertable::bench
