#pragma once

#include <string>
#include <vector>

namespace embertable::bench {

/// Nanoseconds per lookup of wall time: those of the workers shared evenly among all of them.
struct StageTimes {
  double enqueue = 0, forward = 0, backward = 0;  ///< as the caller sees them
  double look_up = 0, scatter = 0, group = 0, sum_and_update = 0;

  double step() const { return enqueue + forward + backward; }
};

/// What decides how many bytes a stage moves for a lookup.
struct StageShape {
  double dim = 0;      ///< floats per row
  double outputs = 0;  ///< output rows per lookup
  double named = 0;    ///< distinct rows of a batch per lookup
  bool one_hot = false;
};

/// A stage, its ns and its bytes per lookup: what it reads and what it writes, once for each time
/// that it does, whichever cache they come from. A line that is written is read before.
struct StageLine {
  std::string stage;
  double ns = 0, bytes = 0;
};

/// A step by its stages.
struct StageTable {
  std::vector<StageLine> lines;
  double step_ns = 0;
  std::vector<std::string> notes;  ///< where a difference of two medians came out below 0
};

/// `with_rule`: an engine as it is; `without`: one whose rule does nothing. What the rule adds to
/// the latter's sums is the update, and what is left of a step is waiting. Both are differences of
/// medians: where noise makes one negative, its line is 0 and a note says by how much.
StageTable divide_step(const StageShape& shape, const StageTimes& with_rule,
                       const StageTimes& without);

}  // namespace embertable::bench
