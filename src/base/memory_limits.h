#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace embertable {

/// Bytes of memory that this process may use, as the system tells them. 0: it tells nothing, or for
/// a group that there is no limit.
struct MemoryLimits {
  std::int64_t machine = 0;      ///< all of the machine
  std::int64_t available = 0;    ///< what programs can still get of it
  std::int64_t group_limit = 0;  ///< limit of the control group that leaves this process least
  std::int64_t group_used = 0;   ///< what that group uses, without files that are merely cached

  /// Returns the bytes that this process may take besides those that it has: the least that the
  /// machine and the group leave. The largest number if neither tells.
  std::int64_t left() const noexcept;
};

/// Asks the system. A process is in a control group and in all those around it, each of which may
/// have a limit. `root` is the folder that has /proc and /sys.
MemoryLimits memory_limits(const std::filesystem::path& root = "/");

/// Returns the folders of this process's control group and of those around it, the outermost first,
/// as far as they are seen here. `controller` is one of the first version of control groups, as
/// "memory"; with "" the groups are those of the second.
std::vector<std::filesystem::path> control_groups(const std::filesystem::path& root,
                                                  const std::string& controller);

}  // namespace embertable
