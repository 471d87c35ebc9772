#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "apps/jobs/run/model_saver.h"
#include "apps/jobs/run/progress.h"
#include "apps/jobs/run/trainer.h"
#include "apps/jobs/spec/model.h"

namespace embertable::jobs {

/// The best epoch of a run, for schedule.patience: its tables and parameters, saved as a run of
/// their own.
class BestEpoch {
 public:
  static constexpr const char* kFolder = "best";

  /// In the folder "best" of the run directory `out`, or, without, in a temporary one that goes
  /// with this. A new run takes away what a broken off one left there. Throws IoError.
  BestEpoch(const std::string& out, bool resumed);
  ~BestEpoch();
  BestEpoch(const BestEpoch&) = delete;
  BestEpoch& operator=(const BestEpoch&) = delete;

  /// In the place of what was kept before. Throws what ModelSaver::save throws.
  void keep(Trainer& trainer, const ModelSaver& saver, const Progress& progress);

  /// Puts back the best epoch that `progress` names; the directory of its step. Throws what
  /// `Embedding::restore` throws, DataLoss if another one is there.
  std::filesystem::path restore(const Progress& progress, Trainer& trainer, Model& model) const;

 private:
  std::filesystem::path directory_;
  bool is_temporary_;
};

}  // namespace embertable::jobs
