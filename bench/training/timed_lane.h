#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "bench/training/lane.h"

namespace embertable::bench {

/// Medians over passes. Each is computed by itself, so that `step` is not exactly the sum of its
/// stages.
struct LaneSeconds {
  StageSeconds stages;
  double step = 0;
};

/// A lane with the times of its passes.
class TimedLane {
 public:
  explicit TimedLane(std::unique_ptr<Lane> lane) : lane_(std::move(lane)) {}

  Lane& lane() { return *lane_; }

  /// Runs a step. Gradients are used in turn; `gradient` may grow without limit.
  void step(std::size_t batch, std::size_t gradient) { pass_ += lane_->step(batch, gradient); }

  /// Runs a step after a moment in which another lane's threads go to sleep.
  void step_in_turn(std::size_t batch, std::size_t gradient);

  /// Ends a pass and keeps its times if it counts.
  void end_pass(bool counts);

  std::span<const StageSeconds> passes() const { return passes_; }
  LaneSeconds median() const;

 private:
  std::unique_ptr<Lane> lane_;
  StageSeconds pass_;
  std::vector<StageSeconds> passes_;
};

}  // namespace embertable::bench
