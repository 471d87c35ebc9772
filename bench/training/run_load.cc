#include "bench/training/run_load.h"

#include <iterator>

namespace embertable::bench {

LoadResult run_load(const Load& load, int threads, int repetitions, const RunKind& kind) {
  const LoadData data(load);
  Lane lane = make_lane(data, threads);
  Limits limits(data, lane.executor());

  const OtherLoad other_load;
  ChangedLine changed_line;
  const std::size_t batches = data.batches.size();
  const std::size_t passes = kind.in_turns ? std::size(LoopTimes::kWays) : 1;
  for (int repetition = 0; repetition <= repetitions; ++repetition) {
    const bool counts = repetition > 0;
    for (std::size_t way = 0; way < passes; ++way) {
      for (std::size_t b = 0; b < batches; ++b) {
        lane.step(b);
        if (kind.in_turns) limits.take_turn((b + (batches + 1) / 2) % batches, way);
      }
      lane.end_pass(counts);
      if (kind.in_turns) limits.end_turns(way, counts);
    }
    changed_line.measure();
    if (counts) limits.run(kind.bare_rows);
  }
  return {.lookups = count_lookups(data.batches),
          .passes = lane.passes().size(),
          .seconds = lane.median(),
          .limits = limits.median(),
          .other_load = other_load.share(),
          .changed_line = changed_line};
}

}  // namespace embertable::bench
