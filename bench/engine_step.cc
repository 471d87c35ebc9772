#include "bench/engine_step.h"

#include "bench/stopwatch.h"

namespace embertable::bench {

StageSeconds timed_step(Executor& executor, Embedding& engine, std::span<const Batch> batches,
                        std::span<const std::span<float>> activations,
                        std::span<const Nested<Gradient>> gradients) {
  executor.run(executor.workers(), [](const WorkItem&) {});
  StageSeconds seconds;
  Stopwatch watch;
  engine.enqueue(batches);
  seconds.enqueue = watch.lap();
  engine.dequeue(activations);
  seconds.forward = watch.lap();
  engine.apply_gradients(gradients);
  seconds.backward = watch.lap();
  return seconds;
}

}  // namespace embertable::bench
