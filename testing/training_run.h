#pragma once

// For tests: runs of jobs on the files of a test.

#include <atomic>

#include "apps/jobs/run/train.h"
#include "apps/jobs/spec/job.h"
#include "testing/temporary_files.h"

namespace embertable::jobs {

/// Trains on data in `files`, whatever options.data_root says.
inline TrainReport train_in(const TemporaryFiles& files, const Job& job, TrainOptions options,
                            TrainObserver& observer) {
  options.data_root = files.path();
  return train(job, options, observer);
}
inline TrainReport train_in(const TemporaryFiles& files, const Job& job,
                            const TrainOptions& options = {}) {
  TrainObserver silent;
  return train_in(files, job, options, silent);
}

/// Stops a run after some steps, if its options point to `now`.
class StopAfter final : public TrainObserver {
 public:
  explicit StopAfter(int steps) : left_(steps) {}
  void stepped(const StepReport&) override {
    if (--left_ == 0) now = true;
  }
  std::atomic<bool> now = false;

 private:
  int left_;
};

}  // namespace embertable::jobs
