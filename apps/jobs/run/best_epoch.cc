#include "apps/jobs/run/best_epoch.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "embertable/errors.h"

namespace embertable::jobs {

BestEpoch::BestEpoch(const std::string& out, bool resumed) : is_temporary_(out.empty()) {
  if (!is_temporary_) {
    directory_ = std::filesystem::path(out) / kFolder;
    std::error_code error;
    if (!resumed) std::filesystem::remove_all(directory_, error);
    if (error)
      throw IoError(fmt::format("'{}': cannot remove the directory: {}", directory_.string(),
                                error.message()));
    return;
  }
  std::string path = (std::filesystem::temp_directory_path() / "embertable-best-XXXXXX").string();
  if (mkdtemp(path.data()) == nullptr)
    throw IoError(fmt::format("'{}': cannot make the directory: {}", path, std::strerror(errno)));
  directory_ = path;
}

BestEpoch::~BestEpoch() {
  std::error_code ignored;
  if (is_temporary_) std::filesystem::remove_all(directory_, ignored);
}

void BestEpoch::keep(Trainer& trainer, const ModelSaver& saver, const Progress& progress) {
  const std::int64_t step = trainer.engine().step();
  const std::vector<std::int64_t> steps = std::filesystem::exists(directory_)
                                              ? CheckpointRun(directory_).steps()
                                              : std::vector<std::int64_t>();
  // A run that lost its last epochs reaches the same steps again.
  if (!steps.empty() && steps.back() == step) return;
  if (!steps.empty() && steps.back() > step) std::filesystem::remove_all(directory_);
  CheckpointRun run(directory_);
  saver.save(run, trainer.engine(), progress);
  run.keep(1);
}

std::filesystem::path BestEpoch::restore(const Progress& progress, Trainer& trainer,
                                         Model& model) const {
  const SavedRun saved = read_saved_run(directory_);
  if (saved.progress.epochs != progress.best_epoch) {
    throw DataLoss(fmt::format("'{}' must hold the tables after epoch {}, got those after {}",
                               directory_.string(), progress.best_epoch, saved.progress.epochs));
  }
  trainer.engine().restore(saved.directory);
  model.restore(saved.state);
  return saved.directory;
}

}  // namespace embertable::jobs
