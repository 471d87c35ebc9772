#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/jobs/run/train.h"

namespace embertable::jobs {

/// Says in words what the figures of a run show: that the model is worse than a baseline, that it
/// overfits, and that its training goes wrong. Judges the former two by the job's first metric.
class Remarks final : public TrainObserver {
 public:
  /// Share of the best validation measure by which the last one must be worse to count as
  /// overfitted: less is chance.
  static constexpr double kOverfitted = 0.01;

  /// Share of the lowest training measure by which the last one must be above it to count as gone
  /// wrong. Training measures are losses and errors.
  static constexpr double kWentWrong = 0.25;

  void started(const StartReport& start) override;
  void finished_epoch(const EpochReport& epoch) override;
  void finished(const TrainReport& report) override;

  /// Returns a sentence for each remark. Requires: the run has finished.
  const std::vector<std::string>& sentences() const noexcept { return sentences_; }

 private:
  struct NamedMeasure {
    std::string baseline;
    double value = 0;
  };

  void compare_with_baselines(const Measure& model);
  void compare_with_best_epoch();
  void compare_training();

  std::vector<std::string> metrics_;
  std::int32_t patience_ = 0;
  std::vector<NamedMeasure> baselines_;
  std::vector<std::string> sentences_;

  /// Validation measures of epochs of this call; epoch 0: none.
  std::int32_t best_epoch_ = 0;
  double best_ = 0, last_ = 0;

  /// The epoch of this call with the lowest training measure; 0: none.
  std::int32_t lowest_epoch_ = 0;
  double lowest_ = 0;
  Measure training_;  ///< measured in the last epoch
};

}  // namespace embertable::jobs
