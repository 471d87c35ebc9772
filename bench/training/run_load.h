#pragma once

#include <cstddef>
#include <cstdint>

#include "bench/limits/limits.h"
#include "bench/loads/load.h"
#include "bench/machine/machine.h"
#include "bench/training/lane.h"

namespace embertable::bench {

/// Results of one load, in seconds of one pass over its batches.
struct LoadResult {
  std::size_t lookups = 0;
  std::size_t passes = 0;  ///< counted ones
  LaneSeconds seconds;
  LimitSeconds limits;
  double other_load = 0;  ///< see OtherLoad, over the repetitions
  ChangedLine changed_line;

  /// Returns lookups per second, given the seconds of a pass.
  double rate(double pass) const { return static_cast<double>(lookups) / pass; }

  /// Returns nanoseconds per lookup, given the seconds of a pass.
  double ns(double pass) const { return pass / static_cast<double>(lookups) * 1e9; }

  /// Returns the rate of a step as a share of the limit for its own bytes.
  double of_limit() const { return limits.step_all() / seconds.step; }
};

/// How a load is run.
struct RunKind {
  /// The bare loops over all bytes also take turns with the steps, batch by batch, each way of
  /// fetching in a pass of its own. So both find the caches as a model's other work leaves them,
  /// and both are as fast as the machine is at that moment.
  bool in_turns = false;
  bool bare_rows = false;  ///< bare loops over the rows alone run too
};

/// Runs one repetition that is not counted, then the others, and after each of them the bare loops
/// over all bytes of the same load, pass by pass.
LoadResult run_load(const Load& load, int threads, int repetitions, const RunKind& kind);

}  // namespace embertable::bench
