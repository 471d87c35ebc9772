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

/// Returns the number that a text begins with, 0 if there is none.
std::int64_t number(const std::string& text) {
  std::int64_t value = 0;
  std::istringstream(text) >> value;
  return value;
}

std::int64_t limit_of(decltype(RLIMIT_AS) resource) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return 0;
  constexpr auto kMost = static_cast<rlim_t>(std::numeric_limits<std::int64_t>::max());
  return static_cast<std::int64_t>(std::min(limit.rlim_cur, kMost));
}

/// Keeps the lower one of two limits, of which 0 is none.
template <class Number>
void lower(Number& limit, Number other) {
  if (other > 0 && (limit == 0 || other < limit)) limit = other;
}

/// Returns the folders of this process's control group and of those around it, as far as they are
/// seen here.
std::vector<fs::path> groups() {
  const fs::path root = "/sys/fs/cgroup";
  std::vector<fs::path> found = {root};
  std::string own;
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("0::/")) own = line.substr(4);
  fs::path folder = root;
  for (const fs::path& part : fs::path(own)) {
    folder /= part;
    if (std::error_code error; !part.empty() && fs::is_directory(folder, error))
      found.push_back(folder);
  }
  return found;
}

void look_at_groups(Machine& machine) {
  for (const fs::path& group : groups()) {
    lower(machine.quota, quota_of(first_line(group / "cpu.max")));
    const std::int64_t limit = number(first_line(group / "memory.max"));
    if (limit <= 0 || (machine.group_limit > 0 && limit >= machine.group_limit)) continue;
    machine.group_limit = limit;
    machine.group_used = number(first_line(group / "memory.current"));
  }
  // The first version of control groups.
  const fs::path old = "/sys/fs/cgroup";
  lower(machine.quota, quota_of(first_line(old / "cpu/cpu.cfs_quota_us") + " " +
                                first_line(old / "cpu/cpu.cfs_period_us")));
  const std::int64_t limit = number(first_line(old / "memory/memory.limit_in_bytes"));
  if (limit > 0 && limit < machine.memory) {
    lower(machine.group_limit, limit);
    machine.group_used = number(first_line(old / "memory/memory.usage_in_bytes"));
  }
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
  constexpr std::int64_t kKibi = 1024;
  Machine machine;
  machine.cpu = value_of("/proc/cpuinfo", "model name");
  look_at_levels(machine);
  machine.cpus = static_cast<std::int32_t>(std::thread::hardware_concurrency());
  machine.allowed = allowed_cpus();
  try_huge_pages(machine);
  machine.memory = number(value_of("/proc/meminfo", "MemTotal")) * kKibi;
  machine.available = number(value_of("/proc/meminfo", "MemAvailable")) * kKibi;
  look_at_groups(machine);
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
