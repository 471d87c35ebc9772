#include "bench/load_bench.h"

#include <memory>
#include <vector>

#include "bench/gradients.h"
#include "bench/load_lane.h"
#include "bench/median.h"
#include "bench/other_load.h"

namespace embertable::bench {
namespace {

double median_of(const std::vector<StageSeconds>& passes, double StageSeconds::*stage) {
  std::vector<double> values;
  for (const StageSeconds& pass : passes) values.push_back(pass.*stage);
  return median(std::move(values));
}

}  // namespace

LoadResult run_load(const Load& load, int threads, int repetitions) {
  const std::vector<LoadBatch> batches = make_load_batches(load);
  const GradientBuffers gradients(load.output_floats(), kGradientBytes);
  LoadLane lane(load, batches, gradients.buffers(), {.threads = threads});
  Team team(threads);
  BareStep bare(load, lane.engine().tables(), batches, gradients.buffers(), team);

  const OtherLoad other_load;
  std::vector<StageSeconds> passes;
  std::vector<double> steps;
  std::size_t done = 0;
  for (int repetition = 0; repetition <= repetitions; ++repetition) {
    StageSeconds pass;
    for (std::size_t b = 0; b < batches.size(); ++b, ++done)
      pass += lane.step(b, done % gradients.buffers().size());
    if (repetition == 0) continue;
    passes.push_back(pass);
    steps.push_back(pass.step());
    bare.run();
  }
  LoadResult result;
  result.lookups = count_lookups(batches);
  result.named_rows = bare.named_rows();
  result.seconds = {median_of(passes, &StageSeconds::enqueue),
                    median_of(passes, &StageSeconds::forward),
                    median_of(passes, &StageSeconds::backward)};
  result.step = median(std::move(steps));
  result.bare = bare.median();
  result.other_load = other_load.share();
  return result;
}

}  // namespace embertable::bench
