#include "bench/training/run_load.h"

namespace embertable::bench {

LoadResult run_load(const Load& load, int threads, int repetitions, const RunKind& kind) {
  const LoadData data(load);
  Lane lane = make_lane(data, threads);
  Limits limits(data, lane.executor());

  const OtherLoad other_load;
  ChangedLine changed_line;
  const std::size_t batches = data.batches.size();
  for (int repetition = 0; repetition <= repetitions; ++repetition) {
    for (std::size_t b = 0; b < batches; ++b) {
      lane.step(b);
      if (kind.as_in_model) limits.touch((b + (batches + 1) / 2) % batches);
    }
    lane.end_pass(repetition > 0);
    changed_line.measure();
    if (repetition > 0) limits.run(kind.bare_rows);
  }
  return {.lookups = count_lookups(data.batches),
          .seconds = lane.median(),
          .limits = limits.median(),
          .other_load = other_load.share(),
          .changed_line = changed_line};
}

}  // namespace embertable::bench
