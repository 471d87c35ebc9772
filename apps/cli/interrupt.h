#pragma once

namespace embertable::tools {

/// What the first signal prints.
enum class Notice { kNone, kStops, kStopsAndSaves };

/// Turns the first SIGINT or SIGTERM after `arm` into a request to stop; a second one ends the
/// program at once with the exit code of that signal. At most one object exists at a time.
class Interrupt {
 public:
  Interrupt() = default;
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  void arm(Notice notice);

  /// Returns true once a signal has arrived.
  bool requested() const noexcept;

  /// Returns the signal that arrived first, "SIGINT" or "SIGTERM". If there was none, because
  /// another process of a run was signalled, it counts as SIGTERM.
  const char* signal_name() const noexcept;

  /// Returns 128 plus the signal's number, as shells do.
  int exit_code() const noexcept;

 private:
  bool armed_ = false;
};

}  // namespace embertable::tools
