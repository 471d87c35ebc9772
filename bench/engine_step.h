#pragma once

#include <span>

#include "bench/lane.h"
#include "embertable/embedding.h"

namespace embertable::bench {

/// One step through the public interface: batches and gradients by replica, activations by replica
/// and feature. The executor's threads are woken before the time begins, as if another step had
/// just ended.
StageSeconds timed_step(Executor& executor, Embedding& engine, std::span<const Batch> batches,
                        std::span<const std::span<float>> activations,
                        std::span<const Nested<Gradient>> gradients);

}  // namespace embertable::bench
