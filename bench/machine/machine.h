#pragma once

#include <cstddef>
#include <string>

namespace embertable::bench {

/// Returns the processor's name as the system gives it and its number of threads: "AMD EPYC 9354, 2
/// threads".
std::string machine_name();

/// Returns the bytes that this process may still take, by the machine and its control groups; 0 if
/// the system does not say.
std::size_t available_memory_bytes();

/// Times of half a message from one thread to another and back, in nanoseconds: that of a cache
/// line which another core has changed, and of taking it. A virtual machine does not say which of
/// its processors have a cache in common, and its host may move them during a run.
struct ChangedLine {
  double least = 0, most = 0;  ///< 0: not measured

  /// Measures once more, in less than half a millisecond. Does nothing if the two threads do not
  /// run side by side.
  void measure();

  /// Returns a line of a report, or "".
  std::string line() const;
};

/// Processor time of the machine.
struct CpuSeconds {
  double busy = 0;  ///< summed over all processes
  double idle = 0;
};

/// Measures how much of the machine's processor time goes to other processes from construction on.
class OtherLoad {
 public:
  OtherLoad();

  /// Returns the share of the time of all CPUs since construction, 0..1; negative if the system
  /// does not say. Processes that belong to the measurement took `companions` seconds of it.
  double share(double companions = 0) const;

  /// Returns the seconds of processor time that this process took since construction.
  double own_seconds() const;

 private:
  CpuSeconds machine_;
  double own_;
};

/// Maximum share of the machine that other processes may take in a valid run.
inline constexpr double kMostOtherLoad = 0.05;

/// Returns a warning if other processes took more than kMostOtherLoad, else "".
std::string other_load_line(double share);

}  // namespace embertable::bench
