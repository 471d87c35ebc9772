#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/jobs/run/train.h"

namespace embertable::jobs {

/// Says in words what the figures of a run show: that the model is worse than a baseline, and that
/// it overfits. Judges by the job's first metric.
class Remarks final : public TrainObserver {
 public:
  /// Share of the best validation measure by which the last one must be worse to count as
  /// overfitted: less is chance.
  static constexpr double kOverfitted = 0.01;

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

  std::vector<std::string> metrics_;
  std::int32_t patience_ = 0;
  std::vector<NamedMeasure> baselines_;
  std::vector<std::string> sentences_;

  /// Validation measures of epochs of this call; epoch 0: none.
  std::int32_t best_epoch_ = 0;
  double best_ = 0, last_ = 0;
};

}  // namespace embertable::jobs
