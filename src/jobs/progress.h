#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "embertable/checkpoint.h"
#include "jobs/data_set.h"
#include "jobs/job.h"

namespace embertable::jobs {

/// How far a run is: with the tables of that moment all that it takes to go on.
struct Progress {
  std::int32_t epochs = 0;   ///< finished ones
  std::int64_t samples = 0;  ///< trained in the epoch after those
  double squares = 0;        ///< of the errors of these samples, each before its own step
  double learning_rate = 0;  ///< of that epoch
  double seconds = 0;        ///< spent training, over all interruptions

  /// Of a pipelined run within an epoch: the activations of the next batch by feature, which it
  /// looked up before the update of the last one.
  std::map<std::string, DenseTensor> looked_up;
};

/// A run as a step of its directory holds it.
struct SavedRun {
  std::filesystem::path directory;   ///< of the step
  std::vector<std::string> skipped;  ///< why higher steps of the run were not taken
  std::int64_t step = 0;
  Job job;
  double mean = 0;  ///< of the training labels
  Progress progress;
  std::map<std::string, std::string> data;  ///< as `data_digests` gives them
};

/// Opens what a run saved: `path` is its directory, of which the latest step is taken, or a step's.
/// Throws IoError, DataLoss, ValueError if something else saved it.
SavedRun read_saved_run(const std::filesystem::path& path);

/// Throws ValueError naming the first key of which this job says something else than the saved one,
/// unless the key never shows in a result or is schedule.epochs, which may grow, and may shrink to
/// what is done.
void check_same_job(const SavedRun& saved, const Job& job);

/// Throws ValueError naming what differs from the data that the run was saved with.
void check_same_data(const SavedRun& saved, const DataSet& data);

/// The JSON state of a run: {"job", "model", "mean", "ids": {table: ids}, "progress", "data"}.
nlohmann::ordered_json run_state(const Job& job, double mean, const Progress& progress,
                                 const std::map<std::string, std::string>& data);

}  // namespace embertable::jobs
