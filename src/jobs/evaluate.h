#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "jobs/data_set.h"
#include "jobs/job.h"
#include "jobs/metrics.h"
#include "jobs/mf_trainer.h"

namespace embertable::jobs {

/// "test", "validation" or "training".
std::string to_string(Part part);

/// The part that a run of the job measures: test, or validation if that part does not train.
Part measured_part(const Job& job);

/// Errors of the model on these samples, predictions clipped to the job's range.
Errors measure(MfTrainer& trainer, const Job& job, const Samples& samples);

struct EvaluateOptions {
  std::string data_root = "examples/data";
  std::int32_t threads = 0;  ///< 0: one per CPU
  std::optional<Part> part;  ///< unset: the one that the run measured
};

struct Evaluation {
  std::filesystem::path directory;  ///< of the step
  std::int64_t step = 0;
  Job job;
  Part part = Part::kTest;
  std::int64_t samples = 0;
  Errors errors;
};

/// Measures a saved run, `path` being its directory, of which the latest step is taken, or a
/// step's. Reads the data as the job of the run says. Throws as read_saved_run, check_same_data,
/// `Embedding::restore` and read_data.
Evaluation evaluate(const std::filesystem::path& path, const EvaluateOptions& options);

}  // namespace embertable::jobs
