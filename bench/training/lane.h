#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/loads/load_data.h"
#include "embertable/embedding.h"

namespace embertable::bench {

/// Time that one step, or one pass of steps, took.
struct StageSeconds {
  double enqueue = 0;   ///< checking and copying the caller's ids
  double forward = 0;   ///< writing activations to the caller's memory
  double backward = 0;  ///< applying gradients to the rows

  double step() const { return enqueue + forward + backward; }
  StageSeconds& operator+=(const StageSeconds& other) {
    enqueue += other.enqueue;
    forward += other.forward;
    backward += other.backward;
    return *this;
  }
};

/// Medians over passes. Each is computed by itself, so that `step` is not exactly the sum of its
/// stages.
struct LaneSeconds {
  StageSeconds stages;
  double step = 0;
};

/// One engine that trains on a load through the public interface, with threads of its own.
class Lane {
 public:
  /// Borrows the data. Requires: the strategy has an executor.
  Lane(const LoadData& data, const StrategyPtr& strategy,
       const std::optional<Optimizer>& optimizer);

  Embedding& engine() { return engine_; }
  Executor& executor() { return *executor_; }

  /// Runs a step that is no part of a pass: it brings back what other work has left of the caches,
  /// and wakes the threads.
  void warm_up(std::size_t batch = 0) { take_step(batch, 0); }

  /// Takes the next steps' gradients from this one on; they are used in turn.
  void next_gradient(std::size_t gradient) { gradient_ = gradient; }

  /// Runs a step of the pass with the next gradients. Wakes the threads before it starts the clock,
  /// as if the step followed another one.
  void step(std::size_t batch) { pass_ += take_step(batch, gradient_++); }

  /// Ends a pass, keeps its times if it counts, and returns them.
  StageSeconds end_pass(bool counts);

  std::span<const StageSeconds> passes() const { return passes_; }
  LaneSeconds median() const;

 private:
  StageSeconds take_step(std::size_t batch, std::size_t gradient);

  std::shared_ptr<Executor> executor_;
  Embedding engine_;
  Mapping memory_;
  std::vector<std::span<float>> activations_;             ///< [own replicas * features]
  std::vector<std::vector<Batch>> batches_;               ///< by batch, then by own replica
  std::vector<std::vector<Nested<Gradient>>> gradients_;  ///< by gradient, then by own replica
  std::size_t gradient_ = 0;
  StageSeconds pass_;
  std::vector<StageSeconds> passes_;
};

/// Makes an engine on a load; `data` is borrowed. `optimizer` replaces the rules of all tables.
Lane make_lane(const LoadData& data, int threads, const std::optional<Optimizer>& optimizer = {});

/// Makes an engine whose tables are divided among hosts, each with an equal share of the load's
/// replicas and one thread. With an exchange this process is one of the hosts, all of which make
/// the lane, and take steps and digests, together; without one, all of them are threads of this
/// process. Requires: `hosts` divides the load's replicas, and is that of the exchange.
Lane make_lane_of_hosts(const LoadData& data, std::int32_t hosts,
                        std::shared_ptr<Exchange> exchange = {});

}  // namespace embertable::bench
