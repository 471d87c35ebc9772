#pragma once

#include <span>
#include <string>

namespace embertable::bench {

/// One measured load of a sweep.
struct SweepPoint {
  std::string factor;  ///< which one was varied, "rows"
  double value = 0;    ///< its value
  int threads = 1;
  double rate = 0;   ///< lookups a second
  double limit = 0;  ///< of the same bytes
};

/// A picture as SVG: a panel for each factor, in the order of their first points, with the rates
/// and the limits of each number of threads on logarithmic axes. Skew is on an even one.
std::string plot_sweep(std::span<const SweepPoint> points);

}  // namespace embertable::bench
