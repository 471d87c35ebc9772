#include "apps/jobs/run/evaluate.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <utility>

#include "apps/jobs/data/data_cache.h"
#include "apps/jobs/run/best_epoch.h"
#include "apps/jobs/run/progress.h"
#include "apps/jobs/run/trainer.h"
#include "base/float_environment.h"
#include "checkpoint/use_opened.h"
#include "embertable/errors.h"

namespace embertable::jobs {

namespace {

/// Returns the cache of the run, if it has one. `best` is within the directory of its run.
std::string cache_beside(const std::filesystem::path& run) {
  const bool best = run.filename() == BestEpoch::kFolder;
  const std::string cache = cache_of(best ? run.parent_path() : run);
  return std::filesystem::is_directory(cache) ? cache : "";
}

}  // namespace

std::string to_string(Part part) {
  return part == Part::kTest ? "test" : part == Part::kValidation ? "validation" : "training";
}

Part measured_part(const Job& job) {
  return job.model->trains_on_validation() ? Part::kTest : Part::kValidation;
}

Measures measure_part(Model& model, Part part, Lookups& lookups, const Job& job) {
  Measures measures = select(model.measure(part, lookups), job.metrics);
  for (const Measure& measure : measures) {
    if (!std::isnan(measure.value) || !model.can_measure(part)) continue;
    throw ValueError(
        fmt::format("the run diverges: {} {} must be a number, got nan after step {}; a lower "
                    "optimizer.learning_rate or schedule.batch may help",
                    to_string(part), measure.name, lookups.engine().step()));
  }
  return measures;
}

Evaluation evaluate(const std::filesystem::path& path, const EvaluateOptions& options) {
  const FloatEnvironment ours;
  SavedRun saved = read_saved_run(path);
  const DataOptions read = {.root = options.data_root.value_or(saved.read.root),
                            .cache = cache_beside(saved.directory.parent_path()),
                            .skip_bad = options.skip_bad.value_or(saved.read.skip_bad)};
  const std::unique_ptr<Model> model = saved.job.model->make(saved.job, read);
  check_share(read.skip_bad, model->left_out());
  check_same_data(saved, *model);
  Trainer trainer(saved.job, *model, make_executor(options.threads));
  checkpoint::restore_opened(trainer.engine(), *saved.reader);
  model->restore(saved.parts());
  const Part part = options.part.value_or(measured_part(saved.job));
  return {.directory = std::move(saved.directory),
          .skipped = std::move(saved.skipped),
          .step = saved.step,
          .job = saved.job,
          .part = part,
          .samples = model->samples(part),
          .measures = measure_part(*model, part, trainer, saved.job)};
}

}  // namespace embertable::jobs
