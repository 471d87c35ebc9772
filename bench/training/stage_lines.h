#pragma once

#include <string>
#include <vector>

namespace embertable::bench {

/// Nanoseconds of wall time per lookup. The time of a stage is that of all workers divided by their
/// number.
struct StageTimes {
  double enqueue = 0, forward = 0, backward = 0;  ///< times that the caller sees
  double look_up = 0, scatter = 0, group = 0, sum_and_update = 0;

  double step() const { return enqueue + forward + backward; }
};

/// The properties of a load that decide how many bytes a stage moves for a lookup.
struct StageShape {
  double dim = 0;      ///< floats per row
  double outputs = 0;  ///< output rows per lookup
  double named = 0;    ///< distinct rows of a batch per lookup
  bool one_hot = false;
  double stored_bytes = 4;       ///< bytes of a number in a table
  bool grouping_fetches = true;  ///< rows are fetched while their entries are grouped
};

/// A stage with its ns and its bytes per lookup. Every read and every write counts, whichever cache
/// serves it; a cache line is read before it is written.
struct StageLine {
  std::string stage;
  double ns = 0, bytes = 0;
};

/// The stages of a step.
struct StageTable {
  std::vector<StageLine> lines;
  double step_ns = 0;
  std::vector<std::string> notes;  ///< where a difference of two medians came out below 0
};

/// Divides a step into its stages, given the times of an engine as it is and of one whose rule does
/// nothing. The time that the rule adds to the sums is the update, and the rest of a step is
/// waiting. Both are differences of medians: if noise makes one negative, its line is 0 and a note
/// says by how much.
StageTable divide_step(const StageShape& shape, const StageTimes& with_rule,
                       const StageTimes& without);

}  // namespace embertable::bench
