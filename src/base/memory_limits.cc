#include "base/memory_limits.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>

namespace embertable {
namespace {

namespace fs = std::filesystem;

/// Returns the number that a file begins with, 0 if there is none, as in "max".
std::int64_t number_in(const fs::path& path) {
  std::ifstream file(path);
  std::int64_t number = 0;
  return file >> number ? number : 0;
}

/// Returns the number behind a name in a file of lines "NAME 123" or "NAME: 123 kB", 0 if there is
/// none.
std::int64_t number_of(const fs::path& path, std::string_view name) {
  std::ifstream file(path);
  std::string word;
  for (std::int64_t number = 0; file >> word; file.clear()) {
    if (word == name && file >> number) return number;
    file.clear();
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return 0;
}

/// True if a comma-separated list has the word.
bool has_word(std::string_view list, std::string_view word) {
  while (true) {
    const std::size_t comma = list.find(',');
    if (list.substr(0, comma) == word) return true;
    if (comma == std::string_view::npos) return false;
    list.remove_prefix(comma + 1);
  }
}

/// Returns this process's group, "" if the system does not say. A line of the file is
/// "NUMBER:CONTROLLERS:PATH", for the second version "0::PATH".
std::string own_group(const fs::path& root, const std::string& controller) {
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first == std::string::npos ? first : first + 1);
    if (second == std::string::npos) continue;
    const std::string_view controllers =
        std::string_view(line).substr(first + 1, second - first - 1);
    if (has_word(controllers, controller)) return line.substr(second + 1);
  }
  return "";
}

/// Names of the files of a version of control groups.
struct GroupFiles {
  const char* controller;
  const char* limit;
  const char* used;
  const char* cached;  ///< name in memory.stat
};

constexpr GroupFiles kVersions[] = {
    {"", "memory.max", "memory.current", "inactive_file"},
    {"memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"},
};

}  // namespace

std::int64_t MemoryLimits::left() const noexcept {
  constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();
  const std::int64_t of_machine = available > 0 ? available : kAny;
  const std::int64_t of_group =
      group_limit > 0 ? std::max<std::int64_t>(group_limit - group_used, 0) : kAny;
  return std::min(of_machine, of_group);
}

MemoryLimits memory_limits(const fs::path& root) {
  constexpr std::int64_t kKibi = 1024;
  MemoryLimits limits;
  limits.machine = number_of(root / "proc/meminfo", "MemTotal:") * kKibi;
  limits.available = number_of(root / "proc/meminfo", "MemAvailable:") * kKibi;
  for (const GroupFiles& files : kVersions) {
    for (const fs::path& group : control_groups(root, files.controller)) {
      const std::int64_t limit = number_in(group / files.limit);
      // The first version writes no limit as a number near 2^63.
      if (limit <= 0 || (limits.machine > 0 && limit >= limits.machine)) continue;
      const std::int64_t used = std::max<std::int64_t>(
          number_in(group / files.used) - number_of(group / "memory.stat", files.cached), 0);
      if (limits.group_limit > 0 && limit - used >= limits.group_limit - limits.group_used)
        continue;
      limits.group_limit = limit;
      limits.group_used = used;
    }
  }
  return limits;
}

std::vector<fs::path> control_groups(const fs::path& root, const std::string& controller) {
  fs::path folder = root / "sys/fs/cgroup" / controller;
  std::vector<fs::path> found = {folder};
  for (const fs::path& part : fs::path(own_group(root, controller)).relative_path()) {
    std::error_code error;
    // A group outside the namespace of this process begins with "..".
    if (part == ".." || !fs::is_directory(folder /= part, error)) break;
    found.push_back(folder);
  }
  return found;
}

}  // namespace embertable
