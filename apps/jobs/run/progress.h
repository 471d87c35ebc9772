#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "apps/jobs/spec/job.h"
#include "apps/jobs/spec/model.h"
#include "embertable/checkpoint.h"
#include "embertable/id_map.h"

namespace embertable::jobs {

/// How far a run is: with the tables of that moment all that it takes to go on.
struct Progress {
  std::int32_t epochs = 0;      ///< finished ones
  std::int64_t samples = 0;     ///< trained in the epoch after those
  std::int64_t trained = 0;     ///< samples of all epochs
  double losses = 0;            ///< sum over the samples of that epoch, each before its own step
  double learning_rate = 0;     ///< at the start of that epoch
  double seconds = 0;           ///< spent training, over all interruptions
  std::int32_t best_epoch = 0;  ///< with schedule.patience: the one to be kept, 0: none yet
  double best = 0;              ///< its validation measure

  /// A pipelined run within an epoch keeps the activations of the next batch by feature, which it
  /// looked up before the update of the last one.
  std::map<std::string, DenseTensor> looked_up;
};

/// A run as a step of its directory holds it.
struct SavedRun {
  std::filesystem::path directory;   ///< directory of the step
  std::vector<std::string> skipped;  ///< why higher steps of the run were not taken
  std::int64_t step = 0;
  Job job;
  Progress progress;
  CallerState state;                        ///< what the model saved, without Progress::looked_up
  std::map<std::string, IdMap> ids;         ///< by name
  std::map<std::string, std::string> data;  ///< result of Model::data_digests
};

/// Opens what a run saved: `path` is its directory, of which the latest step is taken, or a step's.
/// Its parts fit each other. Throws IoError, DataLoss as check_saved_parts, ValueError if something
/// else saved it.
SavedRun read_saved_run(const std::filesystem::path& path);

/// Throws ValueError naming the first key that differs between this job and the saved one, unless
/// the key never shows in a result or is schedule.epochs, which may grow, and may shrink to what is
/// done if the rate does not depend on it.
void check_same_job(const SavedRun& saved, const Job& job);

/// Throws ValueError naming what differs from the data that the run was saved with.
void check_same_data(const SavedRun& saved, const Model& model);

/// The JSON state of a run: {"job", "model", "ids": {table: ids}, "progress", "data"}.
nlohmann::ordered_json run_state(const Job& job, const Progress& progress,
                                 const std::map<std::string, std::string>& data);

}  // namespace embertable::jobs
