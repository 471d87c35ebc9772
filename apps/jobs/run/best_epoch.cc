#include "apps/jobs/run/best_epoch.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <system_error>

#include "checkpoint/json_text.h"
#include "checkpoint/reader.h"
#include "checkpoint/run_directory.h"
#include "checkpoint/use_opened.h"
#include "embertable/errors.h"
#include "exchange/all_gather.h"

namespace embertable::jobs {

bool BestEpoch::holds_only_steps(const std::filesystem::path& folder) {
  if (!std::filesystem::is_directory(folder)) return false;
  const std::filesystem::directory_iterator entries(folder);
  return std::all_of(begin(entries), end(entries), [](const auto& entry) {
    const std::string name = entry.path().filename().string();
    return name.starts_with('.') || checkpoint::parse_step_name(name).has_value();
  });
}

BestEpoch::BestEpoch(const std::string& out, bool resumed, Ranks* ranks)
    : ranks_(ranks), is_temporary_(out.empty()) {
  if (!is_temporary_) {
    directory_ = std::filesystem::path(out) / kFolder;
    if (ranks_ && !ranks_->is_first()) return;
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

/// Returns whether a step is kept already, because a run that lost its last epochs reaches the same
/// steps again. Removes what is kept of later ones.
bool BestEpoch::has_step(std::int64_t step) const {
  const std::vector<std::int64_t> steps = std::filesystem::exists(directory_)
                                              ? CheckpointRun(directory_).steps()
                                              : std::vector<std::int64_t>();
  if (!steps.empty() && steps.back() > step) std::filesystem::remove_all(directory_);
  return !steps.empty() && steps.back() == step;
}

void BestEpoch::keep(Trainer& trainer, const ModelSaver& saver, const Progress& progress) {
  const std::int64_t step = trainer.engine().step();
  bool is_kept = (!ranks_ || ranks_->is_first()) && has_step(step);
  if (ranks_) is_kept = !from_first(*ranks_, "best epoch", is_kept ? "kept" : "").empty();
  if (is_kept) return;
  CheckpointRun run(directory_, trainer.strategy());
  saver.save(run, trainer.engine(), progress);
  run.keep(1);
}

std::filesystem::path BestEpoch::restore(const Progress& progress, Trainer& trainer,
                                         Model& model) const {
  const SavedRun saved = read_saved_run(directory_, ranks_);
  if (saved.progress.epochs != progress.best_epoch) {
    throw DataLoss(fmt::format("'{}' must hold the tables after epoch {}, got those after {}",
                               directory_.string(), progress.best_epoch, saved.progress.epochs));
  }
  checkpoint::restore_opened(trainer.engine(), *saved.reader);
  model.restore(saved.parts());
  return saved.directory;
}

bool is_new_best(const Measure& measure, const Progress& progress) {
  if (std::isnan(measure.value)) return false;
  const bool any = progress.best_epoch > 0 && !std::isnan(progress.best);
  return !any || is_better(measure.name, measure.value, progress.best);
}

std::optional<KeptEpoch> best_of_run(const std::filesystem::path& run) {
  const std::filesystem::path best = run / BestEpoch::kFolder;
  std::error_code none;
  const std::filesystem::directory_iterator entries(best, none);
  if (std::none_of(begin(entries), end(entries), [](const auto& entry) {
        return checkpoint::parse_step_name(entry.path().filename().string()).has_value();
      }))
    return {};
  const checkpoint::Reader step(checkpoint::local_files(), best);
  const checkpoint::Json state =
      checkpoint::parse_json(step.manifest().user_json, step.directory());
  const checkpoint::JsonField progress =
      checkpoint::JsonField(state, step.directory(), "user")["progress"];
  return KeptEpoch{best, step.directory(),
                   static_cast<std::int32_t>(progress["epochs"].integer(0, INT32_MAX))};
}

std::vector<std::string> skipped_steps(const std::filesystem::path& run) {
  return checkpoint::Reader(checkpoint::local_files(), run).skipped();
}

}  // namespace embertable::jobs
