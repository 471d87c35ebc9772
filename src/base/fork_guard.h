#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string_view>

namespace embertable {

/// Remembers the process that constructed it. Threads are not copied by `fork`: a child that waits
/// for one of them waits forever, so an object with threads refuses calls there.
class ForkGuard {
 public:
  ForkGuard();

  /// True in a child that was forked after construction.
  bool forked() const noexcept;

  /// Throws StateError naming `subject` in a forked child.
  void require_same_process(std::string_view subject) const;

 private:
  std::uint32_t forks_;
  pid_t process_;
};

}  // namespace embertable
