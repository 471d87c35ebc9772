#pragma once

#include <cstddef>
#include <string>

namespace embertable::bench {

/// The processor as the system names it and how many threads it runs, "AMD EPYC 9354, 2 threads".
std::string machine_name();

/// Bytes that the kernel could give without swapping; 0 where it does not say.
std::size_t available_memory_bytes();

/// Measures how much of the machine's processor time goes to other processes from here on.
class OtherLoad {
 public:
  OtherLoad();

  /// Share of the time of all CPUs since construction, 0..1; negative where the system does not
  /// say.
  double share() const;

 private:
  double busy_;
  double own_;
  double idle_;
};

/// The share of a machine that other processes may take in a run that is to be believed.
inline constexpr double kMostOtherLoad = 0.05;

/// A line that says so where other processes took more than kMostOtherLoad, else "".
std::string other_load_line(double share);

}  // namespace embertable::bench
