#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "apps/jobs/spec/job.h"
#include "apps/jobs/spec/model.h"
#include "embertable/checkpoint.h"
#include "embertable/id_map.h"

namespace embertable::checkpoint {
class Reader;
}  // namespace embertable::checkpoint

namespace embertable::jobs {

class Ranks;

/// State of a run which, together with the tables of that moment, suffices to resume it.
struct Progress {
  std::int32_t epochs = 0;      ///< finished epochs
  std::int64_t samples = 0;     ///< samples trained in the epoch after those
  std::int64_t trained = 0;     ///< samples of all epochs
  double losses = 0;            ///< sum over the samples of that epoch, each before its own step
  double learning_rate = 0;     ///< at the start of that epoch
  double seconds = 0;           ///< spent training, over all interruptions
  std::int32_t best_epoch = 0;  ///< with schedule.patience: the epoch to be kept, 0: none yet
  double best = 0;              ///< validation measure of best_epoch

  /// Activations of the next batch by feature, which a pipelined run within an epoch looked up
  /// before the update of the last batch.
  std::map<std::string, DenseTensor> looked_up;
};

/// A run as a step of its directory holds it.
struct SavedRun {
  std::filesystem::path directory;   ///< directory of the step
  std::vector<std::string> skipped;  ///< why higher steps of the run were not read
  std::int64_t step = 0;
  std::shared_ptr<const checkpoint::Reader> reader;  ///< opened at that directory
  Job job;
  Progress progress;
  CallerState state;                        ///< what the model saved, without Progress::looked_up
  std::map<std::string, IdMap> ids;         ///< by name
  std::map<std::string, std::string> data;  ///< result of Model::data_digests

  /// Where the run read its data from, and what it left out; no cache. Runs of older versions have
  /// the defaults.
  DataOptions read;

  SavedParts parts() const { return {.job = job, .reader = *reader, .state = state, .ids = ids}; }
};

/// Opens what a run saved. `path` is the directory of a run, whose latest step is read, or of a
/// step. Checks that its parts fit each other. Throws IoError, DataLoss as check_saved_parts,
/// ValueError if something else saved it. `ranks`: processes that all call this; they read the step
/// that host 0 finds, and only host 0 knows of skipped ones.
SavedRun read_saved_run(const std::filesystem::path& path, Ranks* ranks = nullptr);

/// Throws ValueError naming the first key that differs between this job and the saved one. Keys
/// that do not affect results may differ; schedule.epochs may grow, and may shrink to the finished
/// epochs if the rate does not depend on it.
void check_same_job(const SavedRun& saved, const Job& job);

/// Throws ValueError naming what differs from the data that the run was saved with.
void check_same_data(const SavedRun& saved, const Model& model);

/// Returns the JSON state of a run: {"job", "model", "ids": {table: ids}, "progress", "data",
/// "read": {"folder", "skip_bad"}}.
nlohmann::ordered_json run_state(const Job& job, const Progress& progress,
                                 const std::map<std::string, std::string>& data,
                                 const DataOptions& read);

}  // namespace embertable::jobs
