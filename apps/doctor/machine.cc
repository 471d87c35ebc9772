#include "apps/doctor/machine.h"

#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <thread>

#include "base/memory.h"
#include "base/memory_limits.h"
#include "embertable/errors.h"
#include "kernels/level.h"

namespace embertable::doctor {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kTriedBytes = 8 << 20;

/// Returns the first line of a file, "" if it cannot be read.
std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// Returns what follows the name and a colon in a file of such lines, "" if nothing does.
std::string value_of(const fs::path& path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(name)) continue;
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

std::int64_t limit_of(decltype(RLIMIT_AS) resource) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return 0;
  constexpr auto kMost = static_cast<rlim_t>(std::numeric_limits<std::int64_t>::max());
  return static_cast<std::int64_t>(std::min(limit.rlim_cur, kMost));
}

/// Keeps the lower one of two limits, of which 0 is none.
void lower(double& limit, double other) {
  if (other > 0 && (limit == 0 || other < limit)) limit = other;
}

/// Returns the CPUs whose time this process's control groups leave it, 0 without a limit.
double quota_of_groups() {
  double quota = 0;
  for (const fs::path& group : control_groups("/", ""))
    lower(quota, quota_of(first_line(group / "cpu.max")));
  for (const fs::path& group : control_groups("/", "cpu")) {  // the first version
    lower(quota, quota_of(first_line(group / "cpu.cfs_quota_us") + " " +
                          first_line(group / "cpu.cfs_period_us")));
  }
  return quota;
}

std::int32_t allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
}

void look_at_levels(Machine& machine) {
  for (const SimdLevel level : usable_levels()) machine.levels.emplace_back(to_string(level));
  try {
    machine.level = to_string(simd_level());
  } catch (const ValueError& error) {
    machine.wrong_level = error.what();
  }
}

void try_huge_pages(Machine& machine) {
  machine.huge_pages = chosen_word(first_line("/sys/kernel/mm/transparent_hugepage/enabled"));
  try {
    const Mapping mapping(kTriedBytes);
    mapping.touch();
    machine.tried_bytes = mapping.bytes();
    machine.tried_in_huge = mapping.use().huge_bytes;
  } catch (const IoError&) {  // the limits say why
  }
}

}  // namespace

Machine look_at_machine() {
  Machine machine;
  machine.cpu = value_of("/proc/cpuinfo", "model name");
  look_at_levels(machine);
  machine.cpus = static_cast<std::int32_t>(std::thread::hardware_concurrency());
  machine.allowed = allowed_cpus();
  try_huge_pages(machine);
  const MemoryLimits memory = memory_limits();
  machine.memory = memory.machine;
  machine.available = memory.available;
  machine.group_limit = memory.group_limit;
  machine.group_used = memory.group_used;
  machine.quota = quota_of_groups();
  machine.address_space = limit_of(RLIMIT_AS);
  machine.file_bytes = limit_of(RLIMIT_FSIZE);
  machine.open_files = limit_of(RLIMIT_NOFILE);
  machine.strict_commit = first_line("/proc/sys/vm/overcommit_memory") == "2";
  return machine;
}

std::string chosen_word(const std::string& text) {
  const std::size_t begin = text.find('['), end = text.find(']');
  return begin == std::string::npos || end == std::string::npos || end < begin
             ? ""
             : text.substr(begin + 1, end - begin - 1);
}

double quota_of(const std::string& text) {
  double used = 0, period = 0;
  std::istringstream(text) >> used >> period;
  return used > 0 && period > 0 ? used / period : 0;
}

}  // namespace embertable::doctor
