#pragma once

#include <chrono>
#include <cstdint>

namespace embertable {

/// Stages of a step that run on workers and are timed one by one.
enum class StepStage {
  kLookUp,        ///< rows gathered and combined
  kScatter,       ///< entries placed into the buckets of their tables
  kGroup,         ///< entries of a bucket grouped by row, rows fetched
  kSumAndUpdate,  ///< gradients summed, rows and slots written
};

/// Starts or stops timing the stages of every engine of this process. For measurements. Requires:
/// no step is running.
void time_stages(bool on) noexcept;
bool stages_are_timed() noexcept;

/// Returns the seconds that all workers together have spent on a stage since the last call.
double take_stage_seconds(StepStage stage) noexcept;

void add_stage_time(StepStage stage, std::chrono::steady_clock::duration time) noexcept;

/// Times one worker's stages. Reads the clock only while stages are timed.
class StageLap {
 public:
  StageLap() : counts_(stages_are_timed()) {
    if (counts_) last_ = std::chrono::steady_clock::now();
  }

  /// Adds the time since the last lap, or since construction, to a stage.
  void to(StepStage stage) {
    if (!counts_) return;
    const auto now = std::chrono::steady_clock::now();
    add_stage_time(stage, now - last_);
    last_ = now;
  }

 private:
  bool counts_;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace embertable
