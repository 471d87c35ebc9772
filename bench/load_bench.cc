#include "bench/load_bench.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "bench/gradients.h"
#include "bench/load_lane.h"
#include "bench/median.h"
#include "bench/memory.h"
#include "bench/other_load.h"

namespace embertable::bench {
namespace {

/// The share of the free memory that a load may take.
constexpr double kLoadMemoryShare = 0.8;

/// Floats of a row's full-size slots, in rows.
std::size_t slot_rows(const std::string& rule) {
  if (rule == "adagrad" || rule == "momentum" || rule == "lion") return 1;
  return rule == "sgd" || rule == "rowwise_adagrad" ? 0 : 2;
}

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

std::size_t bytes_for(const Load& load) {
  std::size_t floats = 0;
  for (const LoadTable& table : load.tables) {
    const std::size_t slots = slot_rows(table.rule);
    floats += static_cast<std::size_t>(table.rows) *
              (static_cast<std::size_t>(table.dim) * (1 + slots) + (slots == 0 ? 1 : 0));
  }
  std::size_t ids = 0;
  for (const LoadFeature& feature : load.features)
    ids += static_cast<std::size_t>(feature.min_ids + feature.max_ids) / 2;
  ids *= static_cast<std::size_t>(load.samples) * static_cast<std::size_t>(load.replicas) *
         static_cast<std::size_t>(load.batches);
  return floats * sizeof(float) * 2 + ids * 24 + load.output_floats() * sizeof(float) * 8;
}

bool make_fit(Load& load) {
  const double free = kLoadMemoryShare * static_cast<double>(available_memory_bytes());
  constexpr std::int64_t kFewRows = 1000;
  while (free > 0 && static_cast<double>(bytes_for(load)) > free) {
    bool smaller = false;
    for (LoadTable& table : load.tables) {
      if (table.rows < 2 * kFewRows) continue;
      table.rows /= 2;
      smaller = true;
    }
    if (!smaller) return false;
  }
  return true;
}

}  // namespace embertable::bench
