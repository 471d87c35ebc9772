#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "apps/jobs/run/model_saver.h"
#include "apps/jobs/run/progress.h"
#include "apps/jobs/run/ranks.h"
#include "apps/jobs/run/train.h"
#include "embertable/checkpoint.h"
#include "embertable/embedding.h"

namespace embertable::jobs {

/// The directory in which a run saves its steps, and the run that was found there to be resumed.
/// Where several processes train together, all of them make the same calls.
class RunOutput {
 public:
  /// Opens `options.out`, or makes it, and reads the run that is to be resumed. Changes nothing
  /// that is there. `ranks`: the processes that train together, or null. Throws ValueError unless
  /// the directory is empty or its run is to be resumed or overwritten, and is of this job; what
  /// read_saved_run throws.
  RunOutput(const Job& job, const TrainOptions& options, const std::shared_ptr<Ranks>& ranks);

  /// Returns the run to resume; null: there is none.
  SavedRun* found() noexcept { return found_ ? &*found_ : nullptr; }
  const SavedRun* found() const noexcept { return found_ ? &*found_ : nullptr; }

  /// Goes on from the run that was found: later steps, which cannot be opened, are renamed, because
  /// the run will reach their numbers again. Closes the step's files. Requires: it is restored.
  void go_on();

  /// Removes the run that a new one takes the place of. Interrupted anywhere, steps are whole or
  /// gone.
  void remove_old();

  /// Saves the step that the engine has reached, and removes what the job does not keep. Throws
  /// what ModelSaver::save throws.
  void save(const ModelSaver& saver, Embedding& engine, const Progress& progress);

  /// Returns the directory of the last step that is saved; empty before the first.
  const std::filesystem::path& saved() const noexcept { return saved_; }
  bool has_saved(std::int64_t step) const noexcept { return step == saved_step_; }

 private:
  const bool changes_files_;
  const std::int32_t keep_;  ///< steps; 0: all
  CheckpointRun run_;
  std::optional<SavedRun> found_;
  std::filesystem::path saved_;
  std::int64_t saved_step_ = -1;
};

}  // namespace embertable::jobs
