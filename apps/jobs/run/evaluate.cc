#include "apps/jobs/run/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "apps/jobs/data/data_cache.h"
#include "apps/jobs/run/best_epoch.h"
#include "apps/jobs/run/progress.h"
#include "apps/jobs/run/trainer.h"
#include "base/float_environment.h"
#include "checkpoint/reader.h"
#include "checkpoint/use_opened.h"
#include "embertable/errors.h"
#include "embertable/serving.h"

namespace embertable::jobs {

namespace {

/// Returns the cache of the run, if it has one. `best` is within the directory of its run.
std::string cache_beside(const std::filesystem::path& run) {
  const bool best = run.filename() == BestEpoch::kFolder;
  const std::string cache = cache_of(best ? run.parent_path() : run);
  return std::filesystem::is_directory(cache) ? cache : "";
}

bool has_rows_to_serve(const SavedRun& saved) {
  return std::ranges::any_of(saved.reader->manifest().tables,
                             [](const auto& table) { return table.row_type == RowType::kInt8; });
}

/// Gives an engine of float32 rows those that a ServingEmbedding looks up. An engine restores no
/// rows of int8, since it could not train them.
void assign_served_rows(const SavedRun& saved, Embedding& engine) {
  constexpr std::int64_t kFloatsAtOnce = 1 << 20;
  const ServingEmbedding served = saved.parts().serve();
  std::vector<std::int64_t> ids;
  std::vector<float> rows;
  for (const TableInfo& table : engine.tables()) {
    const std::int64_t at_once = std::max<std::int64_t>(1, kFloatsAtOnce / table.dim);
    for (std::int64_t first = 0; first < table.vocabulary_size; first += at_once) {
      ids.resize(std::min(at_once, table.vocabulary_size - first));
      std::iota(ids.begin(), ids.end(), first);
      rows.resize(ids.size() * table.dim);
      served.read_rows(table.name, ids, rows);
      engine.assign_rows(table.name, ids, rows);
    }
  }
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
  const bool served = has_rows_to_serve(saved);
  Job measured = saved.job;
  for (TableSpec& table : measured.tables)
    if (served) table.row_type = RowType::kFloat32;
  Trainer trainer(measured, *model, make_executor(options.threads));
  if (served)
    assign_served_rows(saved, trainer.engine());
  else
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
