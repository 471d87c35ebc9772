#include "bench/training/stage_lines.h"

#include <fmt/format.h>

#include <algorithm>

namespace embertable::bench {

StageTable divide_step(const StageShape& shape, const StageTimes& with_rule,
                       const StageTimes& without) {
  const StageTimes& full = with_rule;
  const double row = shape.stored_bytes * shape.dim, wide = 4 * shape.dim,
               splits = shape.one_hot ? 0 : 8 * shape.outputs;
  const double sum = std::clamp(without.sum_and_update, 0.0, std::max(full.sum_and_update, 0.0));
  const double waiting =
      full.forward + full.backward - full.look_up - full.scatter - full.group - full.sum_and_update;
  StageTable table;
  table.step_ns = full.step();
  table.lines = {
      {"validate and copy", full.enqueue, 8 + 8 * shape.outputs + 2 * (4 + splits)},
      {"gather and combine", full.look_up, 4 + splits + row + 2 * wide * shape.outputs},
      {"scatter", full.scatter, full.scatter == 0 ? 0 : 4 + splits + 2 * 8},
      {"group", full.group,
       full.group == 0 ? 0 : 8 + (shape.grouping_fetches ? (row + 64) * shape.named : 0)},
      {"sum", sum, 4 + wide},
      {"update", std::max(full.sum_and_update - sum, 0.0), 2 * (row + 4) * shape.named},
      {"waiting, lists", std::max(waiting, 0.0), 0},
  };
  if (full.sum_and_update < without.sum_and_update)
    table.notes.push_back(
        fmt::format("update: less than this run can tell; sums took {:.2f} ns with the rule and "
                    "{:.2f} ns without",
                    full.sum_and_update, without.sum_and_update));
  if (waiting < 0)
    table.notes.push_back(fmt::format(
        "waiting, lists: less than this run can tell; the stages took {:.2f} ns more than forward "
        "and backward",
        -waiting));
  return table;
}

}  // namespace embertable::bench
