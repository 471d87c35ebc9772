#include "apps/jobs/run/run_output.h"

#include <fmt/format.h>

#include <filesystem>

#include "apps/jobs/run/best_epoch.h"
#include "checkpoint/reader.h"
#include "checkpoint/run_directory.h"
#include "embertable/errors.h"
#include "exchange/all_gather.h"

namespace embertable::jobs {
namespace {

/// Opens a run directory for all processes.
CheckpointRun open_out(const std::string& out, const std::shared_ptr<Ranks>& ranks) {
  if (!ranks) return CheckpointRun(out);
  CheckpointRun run(out, EngineStrategy({.executor = make_inline_executor(), .exchange = ranks}));
  ranks->require_shared(out);
  return run;
}

/// Whether the newest step is one of a run of train. One that cannot be opened may be.
bool holds_run(const CheckpointRun& out) {
  try {
    return checkpoint::Reader(checkpoint::local_files(), out.directory())
        .caller_state(false)
        .blobs.contains("job.toml");
  } catch (const IoError&) {
    return true;
  }
}

/// Returns whether `out` holds a run that is to be resumed. Throws ValueError, before hours of
/// training instead of after them, if `out` is not as it should be.
bool is_to_resume(const CheckpointRun& out, const Job& job, const TrainOptions& options) {
  const std::string shown = out.directory().string();
  if (out.steps().empty()) {
    // A run may be interrupted between its first best epoch and its first save.
    const bool may_have_best = options.overwrite || (options.resume && job.schedule.patience > 0);
    for (const auto& entry : std::filesystem::directory_iterator(out.directory())) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with('.')) continue;
      if (may_have_best && name == BestEpoch::kFolder && BestEpoch::holds_only_steps(entry.path()))
        continue;
      throw ValueError(fmt::format("out must be a new or an empty directory, got '{}'", shown));
    }
    return false;
  }
  if (!options.resume && !options.overwrite) {
    if (!holds_run(out))
      throw ValueError(
          fmt::format("out must be a new or an empty directory, got '{}', which holds tables up to "
                      "step {} that train did not save",
                      shown, out.steps().back()));
    throw ValueError(
        fmt::format("out must be a new or an empty directory, got '{0}', which holds a run up to "
                    "step {1}; {2}resume goes on with it, {2}overwrite removes it",
                    shown, out.steps().back(), options.option_prefix));
  }
  return options.resume;
}

/// Returns the run in `out` that is to be resumed; empty for a new run. `ranks`: the processes that
/// call this together, or null.
std::optional<SavedRun> find_run(const CheckpointRun& out, const Job& job,
                                 const TrainOptions& options, Ranks* ranks) {
  bool resumes = (!ranks || ranks->is_first()) && is_to_resume(out, job, options);
  if (ranks) resumes = !from_first(*ranks, "run to resume", resumes ? "yes" : "").empty();
  if (!resumes) return {};
  SavedRun saved = read_saved_run(out.directory(), ranks);
  check_same_job(saved, job);
  saved.ids.clear();  // the data number the keys anew
  return saved;
}

/// Renames steps that cannot be opened, because the run will reach their numbers again.
void set_aside_above(const CheckpointRun& out, std::int64_t step) {
  checkpoint::Directory& run = checkpoint::open_run(out).opened();
  for (const std::int64_t higher : out.steps()) {
    if (higher <= step) continue;
    const std::string name = checkpoint::step_name(higher);
    std::string aside = "damaged-" + name;
    for (int k = 1; checkpoint::has_name(run, aside); ++k)
      aside = fmt::format("damaged-{}-{}", name, k);
    run.rename(name, aside);
  }
  run.sync();
}

/// Removes the run that a new one takes the place of. Interrupted anywhere, steps are whole or
/// gone.
void remove_run(const CheckpointRun& out) {
  checkpoint::Directory& run = checkpoint::open_run(out).opened();
  for (const std::int64_t step : out.steps()) checkpoint::remove_step(run, step);
  if (checkpoint::has_name(run, BestEpoch::kFolder))
    checkpoint::remove_all(run, BestEpoch::kFolder);
  run.sync();
}

}  // namespace

RunOutput::RunOutput(const Job& job, const TrainOptions& options,
                     const std::shared_ptr<Ranks>& ranks)
    : changes_files_(!ranks || ranks->is_first()),
      keep_(job.checkpoint.keep),
      run_(open_out(options.out, ranks)),
      found_(find_run(run_, job, options, ranks.get())) {
  if (!found_) return;
  saved_ = found_->directory;
  saved_step_ = found_->step;
}

void RunOutput::go_on() {
  if (changes_files_) set_aside_above(run_, found_->step);
  found_->reader.reset();  // open files of a step that is removed would keep their space
}

void RunOutput::remove_old() {
  if (changes_files_) remove_run(run_);
}

void RunOutput::save(const ModelSaver& saver, Embedding& engine, const Progress& progress) {
  saved_ = saver.save(run_, engine, progress);
  if (keep_ > 0) run_.keep(keep_);
  saved_step_ = engine.step();
}

}  // namespace embertable::jobs
