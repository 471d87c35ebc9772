#include "apps/jobs/run/remarks.h"

#include <fmt/format.h>

#include <cmath>

namespace embertable::jobs {

void Remarks::started(const StartReport& start) {
  metrics_ = start.job.metrics;
  patience_ = start.job.schedule.patience;
  for (const Baseline& baseline : start.baselines)
    baselines_.push_back({baseline.name, value_of(baseline.measures, metrics_.front())});
}

void Remarks::finished_epoch(const EpochReport& epoch) {
  training_ = epoch.training;
  if (lowest_epoch_ == 0 || training_.value < lowest_) {
    lowest_epoch_ = epoch.epoch;
    lowest_ = training_.value;
  }
  if (epoch.validation.empty()) return;
  last_ = epoch.validation.front().value;
  if (best_epoch_ > 0 && !is_better(metrics_.front(), last_, best_)) return;
  best_epoch_ = epoch.epoch;
  best_ = last_;
}

void Remarks::finished(const TrainReport& report) {
  compare_with_baselines(report.measures.front());
  if (patience_ == 0) compare_with_best_epoch();
  compare_training();
}

void Remarks::compare_training() {
  if (lowest_epoch_ == 0 || !(training_.value > (1 + kWentWrong) * lowest_)) return;
  sentences_.push_back(
      fmt::format("training goes wrong: its {} was lowest in epoch {}, {:.4g}, and is {:.4g} at "
                  "the end; a lower optimizer.learning_rate or schedule.batch makes the steps of "
                  "a row shorter",
                  training_.name, lowest_epoch_, lowest_, training_.value));
}

void Remarks::compare_with_baselines(const Measure& model) {
  const NamedMeasure* best = nullptr;
  for (const NamedMeasure& one : baselines_) {
    if (is_better(model.name, one.value, best ? best->value : model.value)) best = &one;
  }
  if (!best) return;
  sentences_.push_back(
      fmt::format("the model is worse than the baseline \"{}\": {} {:.4f} against {:.4f}",
                  best->baseline, model.name, model.value, best->value));
}

void Remarks::compare_with_best_epoch() {
  if (best_epoch_ == 0 || !is_better(metrics_.front(), best_, last_)) return;
  if (!(std::abs(best_ - last_) > kOverfitted * std::abs(best_))) return;
  sentences_.push_back(
      fmt::format("the model overfits: validation {} was best after epoch {}, {:.4f}, and is "
                  "{:.4f} at the end; "
                  "schedule.patience keeps the best epoch",
                  metrics_.front(), best_epoch_, best_, last_));
}

}  // namespace embertable::jobs
