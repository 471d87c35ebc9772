#include "apps/jobs/run/memory_use.h"

#include <charconv>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

namespace embertable::jobs {
namespace {

/// Returns the bytes that a line "NAME:  123 kB" of a file gives.
std::optional<std::int64_t> bytes_of_line(const char* path, std::string_view name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(name)) continue;
    const std::size_t first = line.find_first_of("0123456789", name.size());
    std::int64_t number = 0;
    if (first == std::string::npos) return {};
    std::from_chars(line.data() + first, line.data() + line.size(), number);
    return number * 1024;
  }
  return {};
}

}  // namespace

MemoryUse memory_use() {
  constexpr const char* kStatus = "/proc/self/status";
  return {bytes_of_line(kStatus, "VmRSS:").value_or(0),
          bytes_of_line(kStatus, "VmHWM:").value_or(0)};
}

}  // namespace embertable::jobs
