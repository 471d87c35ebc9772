#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/jobs/spec/job.h"
#include "apps/jobs/spec/measures.h"
#include "apps/jobs/spec/split.h"

namespace embertable::jobs {

/// Returns "test", "validation" or "training".
std::string to_string(Part part);

/// Returns the part that a run of the job measures: test, or validation if that part does not
/// train.
Part measured_part(const Job& job);

/// Measures a part with the job's metrics. Throws ValueError naming the step if a measure is not a
/// number though the part has samples.
Measures measure_part(Model& model, Part part, Lookups& lookups, const Job& job);

struct EvaluateOptions {
  std::optional<std::string> data_root;  ///< unset: where the run read its data
  std::optional<SkipBad> skip_bad;       ///< unset: what the run left out at most
  std::int32_t threads = 0;              ///< 0: one per CPU
  std::optional<Part> part;              ///< unset: the one that the run measured
};

struct Evaluation {
  std::filesystem::path directory;   ///< directory of the step
  std::vector<std::string> skipped;  ///< why higher steps of the run were not read
  std::int64_t step = 0;
  Job job;
  Part part = Part::kTest;
  std::int64_t samples = 0;
  Measures measures;  ///< the job's metrics
};

/// Measures a saved run. `path` is the directory of a run, whose latest step is read, or of a step.
/// Reads the data as the job of the run says, from where the run read them and leaving out as much,
/// unless told otherwise, or from the cache beside the run. Throws as
/// read_saved_run, check_same_data, `Embedding::restore` and ModelSpec::make.
Evaluation evaluate(const std::filesystem::path& path, const EvaluateOptions& options);

}  // namespace embertable::jobs
