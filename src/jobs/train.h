#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "embertable/embedding.h"
#include "jobs/baselines.h"
#include "jobs/job.h"

namespace embertable::jobs {

/// Where a job runs; none of it shows in a result.
struct TrainOptions {
  std::string data_root = "examples/data";
  std::string out;           ///< run directory that the tables are saved to, or "": nowhere
  std::int32_t threads = 0;  ///< 0: one per CPU
  std::shared_ptr<Executor> executor = nullptr;  ///< runs the work instead of `threads` threads
};

struct Errors {
  double rmse = 0;
  double mae = 0;
};

/// What is about to be trained.
struct StartReport {
  const Job& job;
  std::int32_t threads;
  std::int64_t training, measured;  ///< samples
  std::string measured_part;        ///< "test", or "validation" if that part does not train
  struct Ids {
    std::string name;
    std::int64_t keys;
    std::int64_t without_record;  ///< owners that the side table lacks
  };
  std::vector<Ids> ids;
  std::vector<Baseline> baselines;  ///< on the measured part
  double read_seconds;
};

/// Where a run is, after each step.
struct StepReport {
  std::int32_t epoch;            ///< from 1
  std::int64_t done, total;      ///< samples of all epochs
  double rmse;                   ///< of this epoch's training samples so far
  double seconds;                ///< spent training
  const StepStatistics& engine;  ///< of the step
};

struct EpochReport {
  std::int32_t epoch;  ///< from 1
  double learning_rate;
  double training_rmse;              ///< of each sample before its own step
  std::optional<Errors> validation;  ///< unless the validation part trains
  double seconds;
  double samples_per_second;
};

/// The end of a run.
struct TrainReport {
  Errors errors;  ///< on the measured part
  std::string measured_part;
  std::int64_t steps;
  std::string digest;           ///< of all tables and slots
  std::filesystem::path saved;  ///< the step's directory, or empty
  double seconds;               ///< spent training, without reading, measuring and saving
  double samples_per_second;
};

/// Is told how a run goes, on the calling thread.
class TrainObserver {
 public:
  virtual ~TrainObserver() = default;
  virtual void started(const StartReport&) {}
  virtual void stepped(const StepReport&) {}
  virtual void finished_epoch(const EpochReport&) {}
};

/// Reads the data, trains, measures once at the end, saves. The same job gives the same digest
/// whatever the options, hosts and look-ahead. Throws ValueError, IoError, DataLoss.
TrainReport train(const Job& job, const TrainOptions& options, TrainObserver& observer);

}  // namespace embertable::jobs
