#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "apps/jobs/run/model_saver.h"
#include "apps/jobs/run/progress.h"
#include "apps/jobs/run/trainer.h"
#include "apps/jobs/spec/model.h"

namespace embertable::jobs {

/// Keeps the best epoch of a run, for schedule.patience: saves its tables and parameters as a run
/// of their own.
class BestEpoch {
 public:
  static constexpr const char* kFolder = "best";

  /// Saves to the folder "best" of the run directory `out`, or, without one, to a temporary folder
  /// that is removed with this object. A new run removes what an interrupted one left there. Throws
  /// IoError.
  BestEpoch(const std::string& out, bool resumed);
  ~BestEpoch();
  BestEpoch(const BestEpoch&) = delete;
  BestEpoch& operator=(const BestEpoch&) = delete;

  /// Replaces the kept epoch. Throws what ModelSaver::save throws.
  void keep(Trainer& trainer, const ModelSaver& saver, const Progress& progress);

  /// Restores the best epoch that `progress` names, and returns the directory of its step. Throws
  /// what `Embedding::restore` throws, DataLoss if another epoch is there.
  std::filesystem::path restore(const Progress& progress, Trainer& trainer, Model& model) const;

 private:
  std::filesystem::path directory_;
  bool is_temporary_;
};

}  // namespace embertable::jobs
