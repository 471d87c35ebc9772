#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "bench/gradients.h"
#include "bench/lane.h"
#include "bench/memory.h"
#include "bench/workload.h"

namespace embertable::bench {

/// What the lanes of one workload work on.
class LaneData {
 public:
  /// The workload is borrowed.
  LaneData(const Workload& workload, int threads);
  LaneData(const LaneData&) = delete;
  LaneData& operator=(const LaneData&) = delete;

  const LaneInput& input() const { return input_; }

 private:
  std::vector<WorkloadBatch> batches_;
  GradientBuffers gradients_;
  HugePages memory_;
  LaneInput input_;
};

/// Medians over the repetitions, each of a pass over all batches; one by one, so that `step` is not
/// quite the sum of its stages.
struct LaneSeconds {
  StageSeconds stages;
  double step = 0;
};

/// A lane with the times of its passes.
class TimedLane {
 public:
  /// null: one whose steps do nothing.
  explicit TimedLane(std::unique_ptr<Lane> lane) : lane_(std::move(lane)) {}

  void step(std::size_t batch, std::size_t gradient);

  /// Ends a pass and keeps its times if it counts.
  void end_pass(bool counts);

  std::span<const StageSeconds> passes() const { return passes_; }
  std::optional<LaneSeconds> median() const;

 private:
  std::unique_ptr<Lane> lane_;
  StageSeconds pass_;
  std::vector<StageSeconds> passes_;
};

}  // namespace embertable::bench
