#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "apps/jobs/run/progress.h"
#include "apps/jobs/spec/job.h"
#include "apps/jobs/spec/model.h"
#include "embertable/embedding.h"
#include "embertable/id_map.h"

namespace embertable::jobs {

/// Saves a run repeatedly. Each commit holds, with the tables: the id maps by the name of their
/// ids, the blob "job.toml", for each [names.IDS] the blob "names.IDS" (a JSON list by row, null
/// without a name), what the model saves, the tensors "looked_up.FEATURE" of a pipelined run, and
/// the JSON of `run_state`.
class ModelSaver {
 public:
  /// Reads the names, or what an earlier run has left in their cache. Job and model are borrowed.
  /// Leaves out at most the broken records that the options allow after the model's. Throws what
  /// CsvReader throws.
  ModelSaver(const Job& job, const Model& model, const DataOptions& options);

  /// Returns the broken records in the names.
  const LeftOut& left_out() const noexcept { return left_out_; }

  /// Saves the engine's tables and returns the step's directory. Throws what `Embedding::save`
  /// throws.
  std::filesystem::path save(CheckpointRun& run, const Embedding& engine,
                             const Progress& progress) const;

 private:
  const Job& job_;
  const Model& model_;
  const DataOptions read_;
  LeftOut left_out_;
  std::map<std::string, std::string> digests_;  ///< digests of the data
  std::map<std::string, std::string> blobs_;
  std::map<std::string, IdMap> id_maps_;
};

}  // namespace embertable::jobs
