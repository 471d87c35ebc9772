#include "jobs/evaluate.h"

#include <utility>

#include "base/float_environment.h"
#include "jobs/progress.h"

namespace embertable::jobs {

std::string to_string(Part part) {
  return part == Part::kTest ? "test" : part == Part::kValidation ? "validation" : "training";
}

Part measured_part(const Job& job) {
  return job.split.train_on_validation ? Part::kTest : Part::kValidation;
}

Errors measure(MfTrainer& trainer, const Job& job, const Samples& samples) {
  RatingMetrics metrics(job.data.lowest, job.data.highest);
  trainer.measure(samples, metrics);
  return {.rmse = metrics.rmse(), .mae = metrics.mae()};
}

Evaluation evaluate(const std::filesystem::path& path, const EvaluateOptions& options) {
  const FloatEnvironment ours;
  SavedRun saved = read_saved_run(path);
  const DataSet data = read_data(saved.job, options.data_root);
  check_same_data(saved, data);
  MfTrainer trainer(saved.job, data, static_cast<float>(saved.mean),
                    make_executor(options.threads));
  trainer.engine().restore(saved.directory);
  const Part part = options.part.value_or(measured_part(saved.job));
  const Samples samples = data.select({part});
  return {.directory = std::move(saved.directory),
          .step = saved.step,
          .job = saved.job,
          .part = part,
          .samples = samples.size(),
          .errors = measure(trainer, saved.job, samples)};
}

}  // namespace embertable::jobs
