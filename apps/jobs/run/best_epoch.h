#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/jobs/run/model_saver.h"
#include "apps/jobs/run/progress.h"
#include "apps/jobs/run/ranks.h"
#include "apps/jobs/run/trainer.h"
#include "apps/jobs/spec/model.h"

namespace embertable::jobs {

/// Keeps the best epoch of a run, for schedule.patience: saves its tables and parameters as a run
/// of their own. Where several processes train together, all of them make the same calls.
class BestEpoch {
 public:
  static constexpr const char* kFolder = "best";

  /// True if a folder of that name may be one that an object of this class left: nothing else is
  /// in it. Throws std::filesystem::filesystem_error if it cannot be read.
  static bool holds_only_steps(const std::filesystem::path& folder);

  /// Saves to the folder "best" of the run directory `out`, or, without one, to a temporary folder
  /// that is removed with this object. A new run removes what an interrupted one left there.
  /// `ranks`: the processes of the run, which have a directory; borrowed, null: there is one.
  /// Throws IoError.
  BestEpoch(const std::string& out, bool resumed, Ranks* ranks = nullptr);
  ~BestEpoch();
  BestEpoch(const BestEpoch&) = delete;
  BestEpoch& operator=(const BestEpoch&) = delete;

  /// Replaces the kept epoch. Throws what ModelSaver::save throws.
  void keep(Trainer& trainer, const ModelSaver& saver, const Progress& progress);

  /// Restores the best epoch that `progress` names, and returns the directory of its step. Throws
  /// what `Embedding::restore` throws, DataLoss if another epoch is there.
  std::filesystem::path restore(const Progress& progress, Trainer& trainer, Model& model) const;

 private:
  bool has_step(std::int64_t step) const;

  Ranks* ranks_;
  std::filesystem::path directory_;
  bool is_temporary_;
};

/// True if a measure is better than that of the best epoch so far, or the first that is a number.
/// NaN is never better: patience counts it as an epoch without a better measure.
bool is_new_best(const Measure& measure, const Progress& progress);

/// The best epoch that a run with schedule.patience keeps.
struct KeptEpoch {
  std::filesystem::path run;   ///< run directory of its own
  std::filesystem::path step;  ///< directory of the step in it
  std::int32_t epoch = 0;
};

/// Returns the best epoch in the directory of a run; empty if it keeps none, or is no run's
/// directory. Throws what opening a step throws.
std::optional<KeptEpoch> best_of_run(const std::filesystem::path& run);

/// Returns why steps of a run that are newer than the one that is read cannot be opened, one text
/// each; none for the directory of a step. Throws what opening a step throws.
std::vector<std::string> skipped_steps(const std::filesystem::path& run);

}  // namespace embertable::jobs
