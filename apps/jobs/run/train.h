#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/jobs/spec/job.h"
#include "apps/jobs/spec/measures.h"
#include "embertable/embedding.h"
#include "embertable/exchange.h"

namespace embertable::jobs {

/// Where a job runs. Does not affect results.
struct TrainOptions {
  std::string data_root;   ///< folder of the job's files, or "": that of `data_folder`
  SkipBad skip_bad;        ///< broken lines of the data to leave out and count before failing
  std::string out;         ///< run directory that the run saves to, or "": nowhere
  std::string cache;       ///< folder of what was read, or "": that of `out`, if there is one
  bool resume = false;     ///< resumes the run in `out`, if there is one
  bool overwrite = false;  ///< removes the run in `out` once this one has reported its start
  std::string option_prefix = "";                ///< stands before names of options in errors: "--"
  std::int32_t threads = 0;                      ///< 0: one per CPU
  std::shared_ptr<Executor> executor = nullptr;  ///< runs the work instead of `threads` threads

  /// Connects the processes that train the job together, each of which calls `train` and is a host.
  /// Null: this process trains it alone.
  std::shared_ptr<Exchange> exchange = nullptr;

  /// Called after every step, on the calling thread; once it gives true, the run saves and returns.
  /// One of several processes suffices to end the run. Null: never.
  std::function<bool()> stop = nullptr;
};

/// Describes what is about to be trained.
struct StartReport {
  const Job& job;
  std::int32_t threads;
  std::int64_t training, measured;  ///< samples
  std::string measured_part;        ///< "test", or "validation" if that part does not train
  struct Ids {
    std::string name;
    std::int64_t keys;            ///< keys with rows of their own
    std::int64_t rows;            ///< rows of their tables, including shared ones
    std::int64_t without_record;  ///< owners that the side table lacks
    std::int64_t empty = 0;       ///< records whose key is empty, where that is a key
    std::string first;            ///< the first key as a text, if there are keys
  };
  std::vector<Ids> ids;
  LeftOut left_out;                 ///< broken records of the data
  std::int64_t repeated_pairs = 0;  ///< result of Model::repeated_pairs for the measured part
  std::vector<Baseline> baselines;  ///< measured on the measured part
  double read_seconds;
  struct Resumed {
    std::filesystem::path directory;  ///< directory of the step
    std::int64_t step;
    std::int32_t epochs;   ///< finished epochs
    std::int64_t samples;  ///< samples trained in the epoch after those

    /// Why higher steps were not read; they have been renamed to "damaged-step_...".
    std::vector<std::string> skipped;
  };
  std::optional<Resumed> resumed;  ///< set if the run resumes from a saved step

  /// The engine's: a table whose rows can never leave zero, a saved step of other numerics.
  std::vector<std::string> warnings;
};

/// State of a run after each step.
struct StepReport {
  std::int32_t epoch;            ///< from 1
  std::int64_t step;             ///< the engine's
  double share;                  ///< share of the run that is done
  std::int64_t trained;          ///< samples of all epochs
  double learning_rate;          ///< rate of the step
  const Measure& training;       ///< measure of this epoch's samples so far
  double seconds;                ///< time spent training
  const StepStatistics& engine;  ///< statistics of the step
};

struct EpochReport {
  std::int32_t epoch;    ///< from 1
  std::int64_t step;     ///< the engine's
  std::int64_t trained;  ///< samples of all epochs
  double learning_rate;  ///< rate of the epoch's first step
  Measure training;      ///< measure of each sample before its own step
  Measures validation;   ///< unless the validation part trains
  bool best = false;     ///< schedule.patience: no epoch before was as good
  double seconds;
  double samples_per_second;
};

/// Describes a saved step.
struct SaveReport {
  std::int64_t step;
  std::filesystem::path directory;
  double seconds;  ///< time that the save took
};

/// The end of a run, or of its part before an interruption.
struct TrainReport {
  bool interrupted = false;
  Measures measures;  ///< on the measured part, unless interrupted; NaN: it has no samples
  std::string measured_part;
  std::int64_t steps = 0;
  /// With schedule.patience, the epoch of the measured tables; 0: the last one.
  std::int32_t best_epoch = 0;
  std::string digest;           ///< result of `run_digest`, unless interrupted
  std::filesystem::path saved;  ///< the directory of the last saved step, or empty
  double seconds = 0;           ///< spent training, without reading, measuring and saving

  /// Parts of `seconds` in this call: in the model's fill, in the engine, in gradients and dense
  /// layers.
  double fill_seconds = 0, engine_seconds = 0, gradient_seconds = 0;
  double samples_per_second = 0;

  /// Where several processes trained: by host, the seconds of training that it waited for messages
  /// of the others in this call.
  std::vector<double> waited_seconds;

  /// Returns the host that waited least, because the others waited for it. Requires: several
  /// processes trained.
  std::int32_t slowest_host() const;
};

/// Receives the events of a run, on the calling thread.
class TrainObserver {
 public:
  virtual ~TrainObserver() = default;
  virtual void started(const StartReport&) {}
  virtual void stepped(const StepReport&) {}
  virtual void finished_epoch(const EpochReport&) {}

  /// Called when a save begins, with the engine's step, on the thread that saves.
  virtual void saving(std::int64_t /*step*/) {}
  virtual void saved(const SaveReport&) {}

  /// Called when the run is over, unless it was interrupted.
  virtual void finished(const TrainReport&) {}
};

/// Reads the data, trains, saves when the job says so and at the end, and measures once at the end.
/// The same job gives the same digest whatever the options, hosts and look-ahead, and however often
/// it is interrupted and resumed. Holds the directory `out` meanwhile, and throws StateError if
/// another process does. Throws ValueError, also if `out` holds something that is not to be resumed
/// or the run there has another job or other data, and naming the step if the loss or a measure is
/// no longer a number; IoError, DataLoss.
///
/// With an exchange all its processes call with the same job, data and run directory, which must be
/// on a file system that they share. Each reads the data, looks up and computes its share, and gets
/// the same report. Host 0 alone calls its observer and writes the state of the run. There is no
/// cache of the data. An error on one process is one on all: the others throw GivenUp, which names
/// the host and its error, or HostLost if another process ended, hangs or cannot be reached. What
/// is saved stays, and can be resumed on any number of processes.
TrainReport train(const Job& job, const TrainOptions& options, TrainObserver& observer);

}  // namespace embertable::jobs
