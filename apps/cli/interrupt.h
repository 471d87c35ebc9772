#pragma once

#include <atomic>

namespace embertable::tools {

/// Turns the first SIGINT or SIGTERM into a wish to stop, from `arm` on; a second one ends the
/// program at once with the exit code of that signal. One at a time.
class Interrupt {
 public:
  Interrupt() = default;
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  void arm();

  /// Becomes true once a signal has come.
  const std::atomic<bool>& requested() const noexcept;

  /// "SIGINT" or "SIGTERM", the one that came.
  const char* signal_name() const noexcept;

  /// 128 and the signal's number, as a shell has it.
  int exit_code() const noexcept;

 private:
  bool armed_ = false;
};

}  // namespace embertable::tools
