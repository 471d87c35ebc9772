#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string_view>

namespace embertable {

/// Remembers the process that it was made in: threads do not come along into a fork, and what waits
/// for them there waits forever.
class HomeProcess {
 public:
  HomeProcess();

  /// True in a forked child.
  bool left() const noexcept;

  /// Throws StateError naming `subject` in a forked child.
  void check(std::string_view subject) const;

 private:
  std::uint32_t forks_;
  pid_t process_;
};

}  // namespace embertable
