#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/jobs/spec/predictor.h"

namespace embertable::jobs {

struct PredictOptions {
  NewRows rows;
  std::int32_t threads = 0;  ///< 0: one per CPU
};

/// Counts and origin of the rows that were scored.
struct Prediction {
  std::filesystem::path directory;   ///< directory of the step
  std::vector<std::string> skipped;  ///< why higher steps of the run were not read
  std::int64_t step = 0;
  std::string job, model;
  RowCounts counts;
  double seconds = 0;  ///< time of reading, scoring and passing on the rows

  double rows_per_second() const noexcept {
    return seconds > 0 ? static_cast<double>(counts.rows) / seconds : 0;
  }
};

/// Scores new rows with a saved run. `path` is the directory of a run, whose latest step is read,
/// or of a step; it has all that is needed, so that the run's data are not read. A score has the
/// same bits as in a measurement of the run, whatever the threads. Throws ValueError if two columns
/// of scores have one name; as read_saved_run and ModelSpec::make_predictor; as Predictor::next,
/// after passing on the scores before the error.
Prediction predict(const std::filesystem::path& path, const PredictOptions& options,
                   ScoreSink& sink);

}  // namespace embertable::jobs
