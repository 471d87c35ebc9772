#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "embertable/embedding.h"
#include "embertable/id_map.h"
#include "jobs/data_set.h"
#include "jobs/job.h"
#include "jobs/progress.h"

namespace embertable::jobs {

/// Saves a run again and again. What one commit holds with the tables: the id maps by the name of
/// their ids, the blob "job.toml", for each [names.IDS] the blob "names.IDS" (a JSON list by row,
/// null without a name), the tensor "vectors.TABLE" where items have sides joined to them (an
/// item's row with its pooled sides: what the model holds against a user's row), the tensors
/// "looked_up.FEATURE" of a pipelined run, and the JSON of `run_state`.
class ModelSaver {
 public:
  /// Reads the names. `mean`: of the training labels; job and data are borrowed. Throws as
  /// CsvReader.
  ModelSaver(const Job& job, const DataSet& data, double mean, const std::string& data_root);

  /// Saves the engine's tables, then removes the steps that the job does not keep. Gives the step's
  /// directory. Throws as `Embedding::save` and `CheckpointRun::keep`.
  std::filesystem::path save(CheckpointRun& run, const Embedding& engine,
                             const Progress& progress) const;

 private:
  const Job& job_;
  const DataSet& data_;
  double mean_;
  std::map<std::string, std::string> digests_;  ///< of the data
  std::map<std::string, std::string> blobs_;
  std::map<std::string, IdMap> id_maps_;
};

}  // namespace embertable::jobs
