#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/jobs/run/train.h"
#include "apps/jobs/spec/job.h"
#include "apps/jobs/sweep/swept_keys.h"

namespace embertable::jobs {

/// Where and how a sweep runs. Does not affect results.
struct SweepOptions {
  std::string data_root;  ///< see TrainOptions
  SkipBad skip_bad;
  std::string out;                  ///< directory of the sweep
  bool resume = false;              ///< takes the results that `out` has, and goes on
  bool overwrite = false;           ///< removes the sweep in `out` once a run has read its data
  std::string option_prefix = "";   ///< see TrainOptions
  bool keep_runs = false;           ///< the directories of finished runs stay
  bool tests_best = true;           ///< the best setting is trained again, and tested
  std::int32_t threads = 0;         ///< number for all runs together; 0: one per CPU
  std::int32_t runs_at_once = 0;    ///< at most; 0: one per thread, as far as memory suffices
  std::function<bool()> stop = {};  ///< called on the calling thread, several times a second

  /// Tells contents of the data files apart where paths and times do not; empty: by those.
  std::string data_stamp = {};
};

/// What one run of a sweep gave.
struct SweptRun {
  std::int64_t number = 0;  ///< number of its setting, from 1
  SweepSetting setting;
  std::string id;          ///< names the run: a hash of its job and of its data files' stamps
  Measures measures;       ///< on the validation part; empty after an error
  std::int32_t epoch = 0;  ///< the epoch of the measured tables
  double seconds = 0;      ///< time of training
  std::string digest;
  std::vector<std::string> warnings;  ///< see StartReport
  std::string error;                  ///< why it has no measures, or ""
};

/// The best run, trained again on the validation part too.
struct BestRun {
  const Job& job;
  const TrainReport& report;
};

struct SweepReport {
  bool interrupted = false;
  std::vector<SweptRun> runs;  ///< best first; those without a measure are last
  std::optional<TrainReport>
      best;  ///< report of the best setting, unless interrupted or not wanted
};

/// Receives the events of a sweep, on the calling thread.
class SweepObserver {
 public:
  virtual ~SweepObserver() = default;

  /// `job`: of the first setting. `finished`: runs whose results `out` has.
  virtual void started(const Job& /*job*/, std::int64_t /*runs*/, std::int64_t /*finished*/) {}

  /// Called when it is known how many runs go side by side, with so many threads each.
  virtual void chose(std::int64_t /*at_once*/, std::int32_t /*threads*/) {}
  virtual void ran(const SweptRun&) {}

  /// Called when the runs are over, before the best is trained again.
  virtual void ranked(const Job& /*job*/, const std::vector<SweptRun>&) {}

  /// Called at the end, if the best was trained again.
  virtual void tested(const BestRun&) {}
};

/// Makes a job with changes. Errors name those of a setting "grid KEY=VALUE". Throws what
/// `read_job` throws.
using JobMaker = std::function<Job(const std::vector<Change>&)>;

/// Trains a job with every setting and measures it on the validation part, which does not train;
/// ranks them by the first metric; trains the best again with the validation part, for as many
/// epochs as it was best after, and measures the test part once. Runs go side by side, each with a
/// share of the threads, as many as the memory holds by what the first took. A run that diverges
/// has an error for a result and does not end the sweep.
///
/// `out` has "runs.jsonl", a line for each finished run; "runs", their directories while they
/// train; "best", the run of the best; "data.cache", the data that they share. Interrupted, it
/// goes on where it was with `resume`; runs whose settings, job and data files are the same are not
/// trained again, so that a sweep can grow. Settings that make the same job, such as 0.1 and 1e-1,
/// are one run, that of the first.
///
/// Throws ValueError for settings that are no jobs or have another first metric than the first one,
/// before anything is trained, for an `out` that is not as it should be, and if no run has a
/// measure; StateError if another sweep goes on in `out`; what `train` throws for the best.
SweepReport sweep(const JobMaker& job_with, const std::vector<SweepSetting>& settings,
                  const SweepOptions& options, SweepObserver& observer);

}  // namespace embertable::jobs
