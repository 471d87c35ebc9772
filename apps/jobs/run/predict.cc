#include "apps/jobs/run/predict.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <set>
#include <utility>

#include "apps/jobs/run/progress.h"
#include "apps/jobs/run/trainer.h"
#include "base/float_environment.h"
#include "embertable/errors.h"

namespace embertable::jobs {

namespace {

/// Throws ValueError for a name that two columns have: programs would find one of them.
void check_names(const std::vector<ScoreColumn>& columns) {
  std::set<std::string> names;
  for (const ScoreColumn& column : columns) {
    if (!names.insert(column.name).second)
      throw ValueError(fmt::format(
          "columns of scores must have different names, got '{}' twice; ids and copied columns of "
          "records can be left out, and a job names its ids",
          column.name));
  }
}

}  // namespace

Prediction predict(const std::filesystem::path& path, const PredictOptions& options,
                   ScoreSink& sink) {
  const FloatEnvironment ours;
  const SavedRun saved = read_saved_run(path);
  const std::unique_ptr<Predictor> predictor =
      saved.job.model->make_predictor(saved.parts(), options.rows);
  const std::shared_ptr<Executor> executor = make_executor(options.threads);
  const auto start = std::chrono::steady_clock::now();
  const std::vector<ScoreColumn> columns = predictor->columns();
  check_names(columns);
  sink.begin(columns);
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
