#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "bench/tables.h"
#include "bench/team.h"
#include "bench/workload.h"
#include "embertable/optimizer.h"

namespace embertable::bench {

/// How long one step, or one pass of steps, took.
struct StageSeconds {
  double enqueue = 0;   ///< the caller's ids checked and copied
  double forward = 0;   ///< activations in the caller's memory
  double backward = 0;  ///< gradients applied to the rows

  double step() const { return enqueue + forward + backward; }
  StageSeconds& operator+=(const StageSeconds& other) {
    enqueue += other.enqueue;
    forward += other.forward;
    backward += other.backward;
    return *this;
  }
};

/// What lanes work on, equal for all of them. Borrowed as long as the lane lives.
struct LaneInput {
  const Workload& workload;
  std::span<const WorkloadBatch> batches;
  std::span<const std::span<const float>> gradients;  ///< each [workload.output_floats()]
  std::span<float> activations;                       ///< [workload.output_floats()]
  int threads = 1;
};

/// One implementation of the training step, with tables of its own that start with fill_initial_row
/// and kInitialSlot, combiner sum and row-wise Adagrad if nothing else is said. Everything that
/// happens once happens in the constructor.
class Lane {
 public:
  virtual ~Lane() = default;

  /// Trains on input.batches[batch] with input.gradients[gradient]. Wakes its threads before it
  /// begins to count, as if the step followed another one.
  virtual StageSeconds step(std::size_t batch, std::size_t gradient) = 0;

  /// Floats before the activation of a sample, and before its gradient, in the input's arrays.
  virtual std::size_t offset(std::int32_t table, std::int32_t sample) const = 0;

  /// One row as it is now, and its row-wise slot.
  virtual float read_row(std::int32_t table, std::int64_t row, std::span<float> out) const = 0;
};

/// The library through its public interface.
std::unique_ptr<Lane> make_engine_lane(const LaneInput& input);

/// With this optimizer instead; for rows and times, not for the slot of `read_row`.
std::unique_ptr<Lane> make_engine_lane(const LaneInput& input, const Optimizer& optimizer);

/// The baseline, on the caller's tables and team. Null if it cannot run here.
std::unique_ptr<Lane> make_baseline_lane(const LaneInput& input, const PlainTables& tables,
                                         Team& team);

}  // namespace embertable::bench
