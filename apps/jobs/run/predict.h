#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "apps/jobs/spec/predictor.h"

namespace embertable::jobs {

struct PredictOptions {
  NewRows rows;
  std::int32_t threads = 0;  ///< 0: one per CPU
};

/// Rows that were scored.
struct Prediction {
  std::filesystem::path directory;  ///< directory of the step
  std::int64_t step = 0;
  std::string job, model;
  RowCounts counts;
  double seconds = 0;  ///< reading, scoring and giving the rows

  double rows_per_second() const noexcept {
    return seconds > 0 ? static_cast<double>(counts.rows) / seconds : 0;
  }
};

/// Scores new rows by a saved run, `path` being its directory, of which the latest step is taken,
/// or a step's: what it needs stands there, the data of the run are not read. A score has the bits
/// that measuring the run has for the same row, whatever the threads. Throws as read_saved_run,
/// ModelSpec::make_predictor and Predictor::next, with the scores before given.
Prediction predict(const std::filesystem::path& path, const PredictOptions& options,
                   ScoreSink& sink);

}  // namespace embertable::jobs
