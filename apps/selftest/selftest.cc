#include "apps/selftest/selftest.h"

#include <algorithm>
#include <fstream>

#include "embertable/optimizer.h"
#include "embertable/version.h"
#include "kernels/level.h"

namespace embertable::selftest {
namespace {

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const std::size_t colon = line.find(": ");
    return colon == std::string::npos ? "" : line.substr(colon + 2);
  }
  return "";
}

std::string compiler() {
#if defined(__clang__)
  return "clang " __clang_version__;
#else
  return "gcc " __VERSION__;
#endif
}

}  // namespace

bool Report::ok() const noexcept {
  return std::ranges::all_of(rules, &Line::ok) && std::ranges::all_of(combiners, &Line::ok);
}

Report run(const std::vector<GoldenVector>& vectors) {
  Report report{.version = kVersion,
                .numerics = kNumericsVersion,
                .compiler = compiler(),
                .cpu = cpu_model()};
  for (const SimdLevel level : usable_levels()) report.levels.emplace_back(to_string(level));
  for (const std::string& rule : optimizer_rules())
    report.rules.push_back(check_rule(rule, vectors));
  for (const std::string& combiner : combiners())
    report.combiners.push_back(check_combiner(combiner));
  return report;
}

}  // namespace embertable::selftest
