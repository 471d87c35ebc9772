#include "bench/compare.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "bench/report.h"

namespace embertable::bench {
namespace {

/// A ratio that changes by more has moved.
constexpr double kMoved = 0.10;

}  // namespace

StoredRun::Ratios StoredRun::ratios_of(const std::string& json) {
  const auto run = nlohmann::json::parse(json);
  const auto step = run.at("step").get<double>();
  return {run.at("workload").get<std::string>(), run.at("threads").get<int>(),
          run.at("rows").get<long long>(), step / run.at("step_limit").get<double>(),
          step / run.at("step_limit_all_bytes").get<double>()};
}

StoredRun::StoredRun(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("'" + path + "' cannot be read");
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.empty()) continue;
    try {
      runs_.push_back(ratios_of(line));
    } catch (const nlohmann::json::exception& error) {
      throw std::runtime_error(
          fmt::format("'{}', line {}: there must be a workload's object as --json prints it: {}",
                      path, number, error.what()));
    }
  }
  if (runs_.empty()) throw std::runtime_error("'" + path + "' has no runs");
}

StoredRun::Comparison StoredRun::compare(const WorkloadResult& result) const {
  const Ratios now = ratios_of(to_json(result));
  for (const Ratios& before : runs_) {
    if (before.workload != now.workload || before.threads != now.threads) continue;
    const double limit = now.limit / before.limit, all = now.all_bytes / before.all_bytes;
    Comparison comparison;
    comparison.slower = limit < 1 - kMoved && all < 1 - kMoved;
    comparison.faster = limit > 1 + kMoved && all > 1 + kMoved;
    comparison.text = fmt::format(
        "{}, {} threads: of the limit {:.3f}, was {:.3f} ({:+.0f} %); of all bytes {:.3f}, was "
        "{:.3f} ({:+.0f} %){}{}",
        now.workload, now.threads, now.limit, before.limit, (limit - 1) * 100, now.all_bytes,
        before.all_bytes, (all - 1) * 100,
        comparison.slower   ? ": SLOWER"
        : comparison.faster ? ": faster"
                            : "",
        before.rows != now.rows
            ? fmt::format(" (tables of {} rows, were {})", now.rows, before.rows)
            : "");
    return comparison;
  }
  return {fmt::format("{}, {} threads: not in the stored run", now.workload, now.threads)};
}

}  // namespace embertable::bench
