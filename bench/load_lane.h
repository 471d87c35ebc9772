#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "bench/gradients.h"
#include "bench/lane.h"
#include "bench/load.h"
#include "embertable/embedding.h"

namespace embertable::bench {

struct LoadLaneOptions {
  int threads = 1;

  /// Instead of the tables' rules.
  std::optional<Optimizer> optimizer = {};
};

/// A load's steps through the public interface.
class LoadLane {
 public:
  /// Batches and gradients are borrowed; each gradient is [load.output_floats()].
  LoadLane(const Load& load, std::span<const LoadBatch> batches,
           std::span<const std::span<const float>> gradients, const LoadLaneOptions& options);

  StageSeconds step(std::size_t batch, std::size_t gradient);

  const Embedding& engine() const { return engine_; }

 private:
  std::shared_ptr<Executor> executor_;
  Embedding engine_;
  HugePages memory_;
  std::vector<std::span<float>> activations_;             ///< [replicas * features]
  std::vector<std::vector<Batch>> batches_;               ///< by batch, then by replica
  std::vector<std::vector<Nested<Gradient>>> gradients_;  ///< by gradient, then by replica
};

/// Nothing is touched: what a step costs beside its rule.
Optimizer idle_optimizer();

}  // namespace embertable::bench
