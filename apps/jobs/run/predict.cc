#include "apps/jobs/run/predict.h"

#include <chrono>
#include <memory>
#include <utility>

#include "apps/jobs/run/progress.h"
#include "apps/jobs/run/trainer.h"
#include "base/float_environment.h"

namespace embertable::jobs {

Prediction predict(const std::filesystem::path& path, const PredictOptions& options,
                   ScoreSink& sink) {
  const FloatEnvironment ours;
  const SavedRun saved = read_saved_run(path);
  const std::unique_ptr<Predictor> predictor =
      saved.job.model->make_predictor(saved.parts(), options.rows);
  const std::shared_ptr<Executor> executor = make_executor(options.threads);
  const auto start = std::chrono::steady_clock::now();
  sink.begin(predictor->columns());
  while (predictor->next(*executor, sink)) {
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return {.directory = saved.directory,
          .skipped = saved.skipped,
          .step = saved.step,
          .job = saved.job.name,
          .model = saved.job.model_kind,
          .counts = predictor->counts(),
          .seconds = seconds.count()};
}

}  // namespace embertable::jobs
