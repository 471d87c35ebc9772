#pragma once

#include <chrono>
#include <cstdint>

namespace embertable {

/// Stages of a step that workers share. What the caller sees of a step tells them apart no further.
enum class Stage {
  kLookUp,        ///< rows gathered and combined
  kScatter,       ///< entries placed into the buckets of their tables
  kGroup,         ///< entries of a bucket grouped by row, rows fetched
  kSumAndUpdate,  ///< gradients summed, rows and slots written
};

/// For measurements: counts what stages take in every engine of this process from now on, or no
/// longer. Not while a step runs.
void time_stages(bool on) noexcept;
bool stages_are_timed() noexcept;

/// Seconds that all workers together have spent on a stage since it was last taken.
double take_stage_seconds(Stage stage) noexcept;

void add_stage_time(Stage stage, std::chrono::steady_clock::duration time) noexcept;

/// One worker's way through stages. Looks at the clock only where stages are timed.
class StageLap {
 public:
  StageLap() : counts_(stages_are_timed()) {
    if (counts_) last_ = std::chrono::steady_clock::now();
  }

  /// Adds what has passed since the last lap, or since construction.
  void to(Stage stage) {
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
